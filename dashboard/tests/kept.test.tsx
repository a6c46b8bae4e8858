import { fireEvent, screen, waitFor } from "@testing-library/preact";
import { expect, test } from "vitest";
import { open } from "./opening";
import { serve } from "./serving";

test("what is kept of a user says which memory was replaced", async () => {
  serve({
    "EventService/ListSessions": () => ({}),
    "SkillService/ListEpisodes": () => ({}),
    "MemoryService/ListMemories": () => ({
      memories: [
        { id: "m-2", text: "lives in Rome" },
        { id: "m-1", text: "lives in Oslo", supersededBy: "m-2" },
      ],
    }),
  });
  open("/agents/user/ann");
  await screen.findByText("lives in Oslo");
  const replaced = screen.getAllByText("replaced").map((one) => one.closest("li")?.textContent);
  expect(replaced).toHaveLength(1);
  expect(replaced[0]).toContain("lives in Oslo");
});

test("a summary of all reflections does not stand over those of one agent", async () => {
  serve({
    "LearnService/SummarizeReflections": () => ({ totalReflections: "7", successRate: 0.5 }),
    "LearnService/ListReflections": () => ({}),
  });
  open("/reflections");
  await screen.findByText("Used in other sessions");
  const agent = screen.getByLabelText("Agent");
  fireEvent.input(agent, { target: { value: "builder" } });
  fireEvent.keyDown(agent, { key: "Enter" });
  await waitFor(() => expect(screen.queryByText("Used in other sessions")).toBeNull());
});
