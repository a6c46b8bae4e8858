import { fireEvent, screen, waitFor, within } from "@testing-library/preact";
import { expect, test } from "vitest";
import { open } from "./opening";
import { serve } from "./serving";

const PATTERN = {
  id: "p-1",
  name: "Money",
  description: "Euros with cents",
  regex: { expression: "[0-9]+ EUR" },
};
const STATS = { pattern: PATTERN, uses: "4", matchCount: "9", rightCount: "3", wrongCount: "1" };
const ANSWERS = {
  "MemoryService/ListPatternStats": () => ({ stats: [{ ...STATS, successRate: 0.75 }] }),
};

test("patterns are listed with their kind, their uses, and how often they were right", async () => {
  serve(ANSWERS);
  open("/patterns");
  const list = await screen.findByRole("list", { name: "Patterns" });
  expect(list.textContent).toContain("expression · used 4 times · Euros with cents");
  within(list).getByText("75% right of 4");
});

test("a pattern finds memories, marks where they match, and takes what is said of them", async () => {
  const text = "😀 it costs 12 EUR or 30 EUR";
  const matches = [
    { text: "12 EUR", start: 11, end: 17 },
    { text: "30 EUR", start: 21, end: 27 },
  ];
  const asked = serve({
    ...ANSWERS,
    "MemoryService/MatchPattern": () => ({
      results: [{ memory: { id: "m-1", text }, matches }],
      totalMatches: "1",
      searchedCount: "8",
    }),
    "MemoryService/RecordPatternMatches": () => ({ stats: STATS }),
  });
  open("/patterns?pattern=Money");
  fireEvent.click(await screen.findByRole("button", { name: "Search memories" }));
  const found = await screen.findByRole("list", { name: "Memories that match" });
  await screen.findAllByText("1 of 8 memories matches.");
  expect([...found.querySelectorAll("mark")].map((one) => one.textContent)).toEqual([
    "12 EUR",
    "30 EUR",
  ]);
  expect(found.querySelector("p")?.textContent).toBe(text);
  fireEvent.click(within(found).getByRole("button", { name: "Wrong" }));
  await within(found).findByRole("button", { name: "✗ Wrong", pressed: true });
  const told = asked.find(({ call }) => call === "MemoryService/RecordPatternMatches");
  expect(told?.request).toEqual({ name: "Money", verdicts: [{ memoryId: "m-1", right: false }] });
});

test("a structure has to be JSON before it is stored", async () => {
  const asked = serve({
    "MemoryService/ListPatternStats": () => ({}),
    "MemoryService/CreatePattern": ({ name }) => ({ pattern: { name } }),
  });
  open("/patterns");
  await screen.findByText("There is no pattern yet.");
  fireEvent.click(screen.getByRole("button", { name: "New pattern" }));
  const name = await screen.findByLabelText("Name");
  fireEvent.input(name, { target: { value: "Orders" } });
  const kind = screen.getByLabelText("What it looks for");
  fireEvent.change(kind, { target: { value: "metadata" } });
  const schema = await screen.findByLabelText<HTMLTextAreaElement>("JSON Schema");
  fireEvent.input(schema, { target: { value: "{" } });
  const form = schema.closest("form") as HTMLFormElement;
  await waitFor(() => expect(schema.value).toBe("{"));
  fireEvent.submit(form);
  await screen.findByText(/The schema is no JSON/);
  fireEvent.input(schema, { target: { value: '{"required": ["order"]}' } });
  await waitFor(() => {
    fireEvent.submit(form);
    expect(location.search).toBe("?pattern=Orders");
  });
  expect(asked.find(({ call }) => call === "MemoryService/CreatePattern")?.request).toEqual({
    name: "Orders",
    description: "",
    structural: { schema: { required: ["order"] }, target: "STRUCTURE_OF_METADATA" },
  });
});
