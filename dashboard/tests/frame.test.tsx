import { fireEvent, screen, waitFor } from "@testing-library/preact";
import { expect, test, vi } from "vitest";
import { keepKey, key, signInNeeded, takeKey } from "../src/api/key";
import { PAGES } from "../src/pages";
import { navigate, partsOf, to } from "../src/router";
import { open } from "./opening";
import { failed, serve } from "./serving";

test("every page has a name and a key of its own", () => {
  expect(new Set(PAGES.map((page) => page.name)).size).toBe(PAGES.length);
  expect(new Set(PAGES.map((page) => page.key)).size).toBe(PAGES.length);
});

test("an address opens its page, and the navigation says which it is", async () => {
  serve({ "EventService/ListSessions": () => ({}) });
  open("/sessions");
  await screen.findByRole("heading", { name: "Sessions", level: 1 });
  expect(screen.getByRole("link", { name: "Sessions" }).getAttribute("aria-current")).toBe("page");
  await waitFor(() => expect(document.title).toBe("Sessions · Mneme"));
});

test("a link leads to a page without loading the frame anew, and the heading has the focus", async () => {
  serve({ "EventService/ListSessions": () => ({}), "AdminService/GetStats": () => ({}) });
  open("/");
  await screen.findByRole("heading", { name: "Overview", level: 1 });
  fireEvent.click(screen.getByRole("link", { name: "Sessions" }));
  const heading = await screen.findByRole("heading", { name: "Sessions", level: 1 });
  expect(location.pathname).toBe("/sessions");
  await waitFor(() => expect(document.activeElement).toBe(heading));
});

test("an address that leads nowhere says so", async () => {
  open("/nowhere/%zz");
  await screen.findByRole("heading", { name: "There is no such page" });
});

test("a server that wants a key is given one that it takes", async () => {
  let taken = false;
  const refused = () => failed(401, "unauthenticated", "no such key");
  serve({
    "EventService/ListSessions": () => (taken ? { totalSize: "0" } : refused()),
    "AdminService/WhoAmI": () => (taken ? { tenantId: "shop" } : refused()),
  });
  open("/sessions");
  const field = await screen.findByLabelText("API key");
  fireEvent.input(field, { target: { value: " mn_wrong " } });
  fireEvent.click(screen.getByRole("button", { name: "Sign in" }));
  await screen.findByText("No such key.");
  expect(key.value).toBe("");
  taken = true;
  fireEvent.submit(field.closest("form") as HTMLFormElement);
  await screen.findByRole("heading", { name: "Sessions", level: 1 });
  expect(sessionStorage.getItem("mneme-key")).toBe("mn_wrong");
});

test("a key that is being tried is not said to be refused", async () => {
  let answer: (value: unknown) => void = () => undefined;
  const asked = new Promise((resolve) => {
    answer = resolve;
  });
  serve({ "EventService/ListSessions": () => ({}), "AdminService/WhoAmI": () => asked });
  signInNeeded.value = true;
  open("/sessions");
  fireEvent.input(await screen.findByLabelText("API key"), { target: { value: "mn_good" } });
  fireEvent.click(screen.getByRole("button", { name: "Sign in" }));
  await screen.findByRole("button", { name: "Signing in…" });
  expect(screen.queryByText(/not taken any more/)).toBeNull();
  answer({});
  await screen.findByRole("heading", { name: "Sessions", level: 1 });
});

test("the frame says whose the key is, and keeps from it what it may not do", async () => {
  serve({
    "AdminService/WhoAmI": () => ({
      tenantId: "shop",
      apiKeyId: "k-1",
      apiKeyName: "reader",
      scopes: ["KEY_SCOPE_READ"],
    }),
    "LearnService/ListLessons": () => ({}),
  });
  open("/lessons");
  const whose = await screen.findByLabelText("Signed in as");
  expect(whose.textContent).toBe("TenantshopKeyreaderMayread");
  const made = await screen.findByRole("button", { name: "New lesson" });
  const why = "This key may not change anything: that needs the scope write, and it has read.";
  expect(made.closest("fieldset")?.disabled).toBe(true);
  expect(made.closest("fieldset")?.title).toBe(why);
  expect(screen.getByRole("button", { name: "Export" }).closest("fieldset")).toBeNull();
  expect(screen.queryByRole("link", { name: "Admin" })).toBeNull();
  navigate("/admin");
  await screen.findByText(/may not administer the server: that needs the scope admin/);
});

test("a key of a link takes no other's place unasked", async () => {
  serve({ "EventService/ListSessions": () => ({}) });
  const anew = vi.spyOn(location, "reload").mockImplementation(() => undefined);
  keepKey("mn_mine");
  history.replaceState(null, "", "/sessions#key=mn_theirs");
  takeKey();
  open("/sessions");
  await screen.findByRole("dialog", { name: "This link brings another key" });
  expect([key.value, location.hash]).toEqual(["mn_mine", ""]);
  fireEvent.click(screen.getByRole("button", { name: "Keep my key" }));
  await screen.findByRole("heading", { name: "Sessions", level: 1 });
  expect(key.value).toBe("mn_mine");
  history.replaceState(null, "", "/sessions#key=mn_theirs");
  takeKey();
  fireEvent.click(await screen.findByRole("button", { name: "Use the link's key" }));
  expect([key.value, anew.mock.calls.length]).toEqual(["mn_theirs", 1]);
});

test("who goes back after signing out finds a page that begins anew", async () => {
  serve({ "EventService/ListSessions": () => ({}) });
  const left = vi.spyOn(location, "assign").mockImplementation(() => undefined);
  const anew = vi.spyOn(location, "reload").mockImplementation(() => undefined);
  keepKey("mn_good");
  open("/sessions");
  fireEvent.click(await screen.findByRole("button", { name: "Sign out" }));
  expect(left).toHaveBeenCalledWith("/");
  expect(anew).not.toHaveBeenCalled();
  // What a browser says to a page that it kept.
  dispatchEvent(new Event("pageshow"));
  expect(anew).toHaveBeenCalled();
});

test("who asked to sign in may go on without a key", async () => {
  serve({ "EventService/ListSessions": () => ({}) });
  open("/sessions");
  fireEvent.click(await screen.findByRole("button", { name: "Sign in with a key" }));
  fireEvent.click(await screen.findByRole("button", { name: "Go on without a key" }));
  await screen.findByRole("heading", { name: "Sessions", level: 1 });
});

test("keys lead to pages, but not while something is typed", async () => {
  serve({ "EventService/ListSessions": () => ({}), "AdminService/GetStats": () => ({}) });
  open("/sessions");
  const agent = await screen.findByLabelText("Agent");
  fireEvent.keyDown(agent, { key: "g" });
  fireEvent.keyDown(agent, { key: "o" });
  expect(location.pathname).toBe("/sessions");
  fireEvent.keyDown(document.body, { key: "g" });
  fireEvent.keyDown(document.body, { key: "o" });
  await screen.findByRole("heading", { name: "Overview", level: 1 });
});

test("ids of any kind find their way into an address and back", () => {
  for (const id of ["a/b", "x?y#z", "50%", "ä ö", ".", "..", "~.", "~~..", "...", "~", "%2E"]) {
    const { pathname } = new URL(to("agents", "user", id), location.href);
    expect(partsOf(pathname)).toEqual(["agents", "user", id]);
  }
});
