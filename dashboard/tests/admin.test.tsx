import { fireEvent, screen } from "@testing-library/preact";
import { expect, test } from "vitest";
import { open } from "./opening";
import { serve } from "./serving";

async function form(answers: Parameters<typeof serve>[0]) {
  const asked = serve({ "AdminService/ListApiKeys": () => ({}), ...answers });
  open("/admin?part=keys");
  fireEvent.click(await screen.findByRole("button", { name: "New key" }));
  fireEvent.input(await screen.findByLabelText("Name"), { target: { value: "nightly" } });
  const limit = screen.getByLabelText("Calls a minute, at most");
  const made = () => asked.filter(({ call }) => call === "AdminService/CreateApiKey");
  const submit = (calls: string): void => {
    fireEvent.input(limit, { target: { value: calls } });
    fireEvent.submit(limit.closest("form") as HTMLFormElement);
  };
  return { submit, made };
}

test("a key is not made without a limit because the limit that was typed is no number", async () => {
  const { submit, made } = await form({
    "AdminService/CreateApiKey": () => ({ secret: "mn_new" }),
  });
  for (const typed of ["1,000", "ten", "0", "-5", "1.5"]) {
    submit(typed);
    await screen.findByText(/Calls a minute are a whole number/);
  }
  expect(made()).toEqual([]);
  submit(" 1000 ");
  await screen.findByText("mn_new");
  expect(made().map(({ request }) => request["rateLimit"])).toEqual([1000]);
});

test("a key is made once, however often the button is pressed", async () => {
  let answer: (value: unknown) => void = () => undefined;
  const secret = new Promise((resolve) => {
    answer = resolve;
  });
  const { submit, made } = await form({ "AdminService/CreateApiKey": () => secret });
  submit("");
  await screen.findByRole("button", { name: "Create" });
  submit("");
  answer({ secret: "mn_new" });
  await screen.findByText("mn_new");
  expect(made().map(({ request }) => request["rateLimit"])).toEqual([0]);
});
