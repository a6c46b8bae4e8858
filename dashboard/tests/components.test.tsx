import { fireEvent, render, screen, waitFor } from "@testing-library/preact";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, test } from "vitest";
import { ApiError } from "../src/api/errors";
import { type PageOf, usePages } from "../src/api/load";
import { ErrorBox } from "../src/components/basics";
import { Bars } from "../src/components/chart";
import { Confirm } from "../src/components/dialog";
import { ChoiceFilter, Filters, TextFilter, timeRange } from "../src/components/filters";
import { Pages } from "../src/components/table";
import { Json, linked, Outside, Text } from "../src/components/text";
import { filter, navigate, startRouter } from "../src/router";

const HOSTILE = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

beforeEach(() => startRouter());

describe("stored text", () => {
  test("is shown as text, never as HTML", () => {
    const { container } = render(<Text value={HOSTILE} />);
    expect(container.textContent).toContain(HOSTILE);
    expect(container.querySelector("img, script")).toBeNull();
  });

  test("in free JSON, too", () => {
    const { container } = render(<Json value={{ [HOSTILE]: [HOSTILE] }} />);
    expect(container.querySelector("img, script")).toBeNull();
  });

  test("opens http(s) addresses only, in a tab that knows nothing of this one", () => {
    const { container } = render(
      <Text value="see https://a.example/b?c=d. javascript:alert(1) data:text/html,x" />,
    );
    const links = [...container.querySelectorAll("a")];
    expect(links.map((link) => link.getAttribute("href"))).toEqual(["https://a.example/b?c=d"]);
    expect(links[0]?.rel).toContain("noopener");
    render(<Outside url="javascript:alert(1)">click</Outside>);
    expect(screen.getByText("click").closest("a")).toBeNull();
  });

  test("has links to which the brackets belong that they open themselves", () => {
    const urls = (text: string) =>
      linked(text).flatMap((part) =>
        typeof part === "object" ? (part as { props: { url: string } }).props.url : [],
      );
    const foo = "https://en.wikipedia.org/wiki/Foo_(bar)";
    expect(urls(`${foo}, (${foo}). [${foo}] [it](${foo})`)).toEqual([foo, foo, foo, foo]);
    expect(urls("(see https://a.example/b).")).toEqual(["https://a.example/b"]);
    expect(urls("https://a.example/?ids[]=1&ids[] [https://a.example/c]")).toEqual([
      "https://a.example/?ids[]=1&ids[]",
      "https://a.example/c",
    ]);
  });

  test("has links that end where their address does, however many stops follow", () => {
    const stops = ".".repeat(200_000);
    const began = performance.now();
    const parts = linked(`https://a.example/b${stops} https://a.example/${stops}x`);
    expect(performance.now() - began).toBeLessThan(2000);
    const urls = parts.filter((part) => typeof part === "object") as { props: { url: string } }[];
    expect(urls.map((one) => one.props.url.length)).toEqual([19, 18 + 200_001]);
  });

  test("that is folded within an address has no link to a part of it", async () => {
    const url = `https://a.example/${"x".repeat(2000)}`;
    const { container } = render(<Text value={`https://a.example/first ${url}`} />);
    const links = () => [...container.querySelectorAll("a")].map((a) => a.getAttribute("href"));
    expect(links()).toEqual(["https://a.example/first"]);
    await userEvent.click(screen.getByRole("button", { name: /Show all/ }));
    expect(links()).toEqual(["https://a.example/first", url]);
  });

  test("that is long is folded until it is asked for", async () => {
    render(<Text value={"word ".repeat(1000)} />);
    const more = screen.getByRole("button", { name: /Show all 5,000 characters/ });
    await userEvent.click(more);
    expect(screen.getByRole("button", { name: "Show less" })).toBeDefined();
  });
});

describe("filters", () => {
  test("live in the address, and are read from it", async () => {
    history.replaceState(null, "", "/sessions?agent=old");
    startRouter();
    render(
      <Filters names={["agent", "status"]}>
        <TextFilter name="agent" label="Agent" />
        <ChoiceFilter
          name="status"
          label="Status"
          choices={[
            ["", "Any"],
            ["error", "Failed"],
          ]}
        />
      </Filters>,
    );
    const agent = screen.getByLabelText<HTMLInputElement>("Agent");
    expect(agent.value).toBe("old");
    fireEvent.input(agent, { target: { value: "new" } });
    fireEvent.keyDown(agent, { key: "Enter" });
    await waitFor(() => expect(location.search).toBe("?agent=new"));
    fireEvent.change(screen.getByLabelText("Status"), { target: { value: "error" } });
    expect(location.search).toBe("?agent=new&status=error");
    fireEvent.click(screen.getByRole("button", { name: "Clear filters" }));
    await waitFor(() => expect(location.search).toBe(""));
  });

  test("of time make a range up to now, or between two days, the last one with it", () => {
    navigate("/?range=24h");
    const now = Date.parse("2026-11-03T12:00:00Z");
    expect(timeRange(now)).toEqual({ startTime: "2026-11-02T12:00:00.000Z" });
    navigate("/?from=2026-11-01&to=2026-11-02");
    const { startTime, endTime } = timeRange(now);
    expect(new Date(startTime ?? "").getTime()).toBe(new Date("2026-11-01T00:00").getTime());
    expect(new Date(endTime ?? "").getTime()).toBe(new Date("2026-11-03T00:00").getTime());
    navigate("/");
    expect(timeRange(now)).toEqual({});
  });
});

describe("a list", () => {
  const List = ({ load }: { load: (token: string) => Promise<PageOf<string>> }) => (
    <Pages of={usePages(load, [filter("q")])} names={["thing", "things"]} empty={<p>nothing</p>}>
      {(items) => (
        <ul>
          {items.map((item) => (
            <li key={item}>{item}</li>
          ))}
        </ul>
      )}
    </Pages>
  );

  test("grows by pages and says how much there is", async () => {
    render(
      <List
        load={async (token) =>
          token ? { items: ["c"], total: 3 } : { items: ["a", "b"], next: "t", total: 3 }
        }
      />,
    );
    await screen.findByText("2 of 3 things");
    await userEvent.click(screen.getByRole("button", { name: "Load more" }));
    await screen.findByText("3 things");
    expect(screen.getAllByRole("listitem").map((item) => item.textContent)).toEqual([
      "a",
      "b",
      "c",
    ]);
    expect(screen.queryByRole("button", { name: "Load more" })).toBeNull();
  });

  test("says no more that a page failed once it is another list", async () => {
    navigate("/?q=old");
    const load = async (token: string): Promise<PageOf<string>> => {
      if (token) throw new ApiError("unavailable", "The server is starting.");
      return filter("q") === "old" ? { items: ["a"], next: "t" } : { items: ["b"] };
    };
    render(<List load={load} />);
    await userEvent.click(await screen.findByRole("button", { name: "Load more" }));
    await screen.findByRole("alert");
    navigate("/?q=new");
    await screen.findByText("b");
    expect(screen.queryByRole("alert")).toBeNull();
  });

  test("shows no rows of other filters than those that are asked for when that fails", async () => {
    navigate("/?q=old");
    let fails = false;
    const load = async (): Promise<PageOf<string>> => {
      if (fails) throw new ApiError("unreachable", "The server does not answer.");
      return { items: [filter("q")] };
    };
    render(<List load={load} />);
    await screen.findByText("old");
    fails = true;
    navigate("/?q=new");
    await screen.findByRole("alert");
    expect(screen.queryByText("old")).toBeNull();
    fails = false;
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    await screen.findByText("new");
  });

  test("says that there is nothing, and that it failed, and is tried again", async () => {
    let fails = true;
    render(
      <List
        load={async () => {
          if (fails) throw new ApiError("unavailable", "The server is starting.", "", "r-9");
          return { items: [] };
        }}
      />,
    );
    expect((await screen.findByRole("alert")).textContent).toContain("r-9");
    fails = false;
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    await screen.findByText("nothing");
  });
});

test("an error says what happened, what to do, and its code", () => {
  render(<ErrorBox error={new ApiError("permission_denied", "It needs scope admin.", "SCOPE")} />);
  const text = screen.getByRole("alert").textContent;
  expect(text).toContain("It needs scope admin.");
  expect(text).toContain("Sign in with a key that has the scope");
  expect(text).toContain("permission_denied · SCOPE");
});

test("a chart has its table", () => {
  render(
    <Bars
      title="Cost by model"
      names={["Model", "Cost"]}
      bars={[{ name: "m-1", value: 2 }]}
      format={(value) => `$${value}`}
    />,
  );
  expect(screen.getByRole("table", { hidden: true }).textContent).toContain("m-1$2");
});

test("what cannot be undone waits for the typed word, and shows why it failed", async () => {
  let closed = false;
  render(
    <Confirm
      title="Forget?"
      action="Forget"
      typed="ann"
      onConfirm={() => Promise.reject(new ApiError("unavailable", "Try later."))}
      onClose={() => {
        closed = true;
      }}
    >
      <p>Gone for good.</p>
    </Confirm>,
  );
  const button = screen.getByRole<HTMLButtonElement>("button", { name: "Forget", hidden: true });
  expect(button.disabled).toBe(true);
  fireEvent.input(screen.getByLabelText(/Type ann/), { target: { value: "ann" } });
  await waitFor(() => expect(button.disabled).toBe(false));
  fireEvent.submit(button.closest("form") as HTMLFormElement);
  await screen.findByText("Try later.");
  expect(closed).toBe(false);
});
