import { fireEvent, screen, waitFor } from "@testing-library/preact";
import { expect, test, vi } from "vitest";
import { open } from "./opening";
import { serve, streamed } from "./serving";

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

test("a memory is pinned and unpinned on its page, and said to be", async () => {
  let pinned = false;
  const memory = () => ({ id: "m-1", text: "allergic to nuts", etag: "e", pinned });
  const changed: unknown[] = [];
  serve({
    "MemoryService/ListMemories": () => ({ memories: [memory()], totalSize: "1" }),
    "MemoryService/GetMemory": () => ({ memory: memory() }),
    "MemoryService/UpdateMemory": (asked) => {
      changed.push(asked);
      pinned = !pinned;
      return { memory: memory() };
    },
  });
  open("/memories?memory=m-1");
  fireEvent.click(await screen.findByRole("button", { name: "Pin" }));
  await screen.findByRole("button", { name: "Unpin" });
  await screen.findByText("first in its user's profile");
  await waitFor(() => expect(screen.getByText("pinned").closest("li")).not.toBeNull());
  fireEvent.click(screen.getByRole("button", { name: "Unpin" }));
  await screen.findByRole("button", { name: "Pin" });
  expect(changed).toEqual([
    { memory: { id: "m-1", etag: "e", pinned: true }, updateMask: "pinned" },
    { memory: { id: "m-1", etag: "e", pinned: false }, updateMask: "pinned" },
  ]);
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

test("the lessons that are exported are those that the search leaves in the list", async () => {
  const lessons = [
    { id: "l-1", title: "Check seats", content: "before booking", category: "travel" },
    { id: "l-2", title: "Set a lock timeout", content: "in migrations", category: "database" },
  ];
  serve({
    "LearnService/ListLessons": () => ({ lessons, totalSize: "2" }),
    "LearnService/SearchLessons": () => ({}),
    "LearnService/ExportLessons": () => streamed(lessons.map((lesson) => ({ lesson }))),
  });
  const written = vi.spyOn(URL, "createObjectURL").mockReturnValue("blob:lessons");
  open("/lessons?q=SEATS");
  await screen.findByText("Check seats");
  fireEvent.click(screen.getByRole("button", { name: "Export" }));
  await waitFor(() => expect(written).toHaveBeenCalled());
  const file = written.mock.calls[0]?.[0] as Blob;
  expect(JSON.parse(await file.text())).toEqual([lessons[0]]);
  written.mockRestore();
});
