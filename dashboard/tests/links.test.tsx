import { screen } from "@testing-library/preact";
import { expect, test } from "vitest";
import { sourceHref } from "../src/links";
import { open } from "./opening";
import { serve } from "./serving";

test("a link to a reflection opens that one, on whichever page it is", async () => {
  const pages: Record<string, object> = {
    "": { reflections: [{ id: "r-1", taskDescription: "The newest" }], nextPageToken: "older" },
    older: { reflections: [{ id: "r/2", taskDescription: "The one that is meant" }] },
  };
  serve({ "LearnService/ListReflections": ({ pageToken }) => pages[String(pageToken ?? "")] });
  open(sourceHref({ sourceType: "reflection", sourceId: "r/2" }) ?? "");
  await screen.findByRole("heading", { name: "The one that is meant" });
  expect(screen.queryByText("The newest")).toBeNull();
});

test("a link to a reflection that is gone says so", async () => {
  serve({ "LearnService/ListReflections": () => ({}) });
  open("/reflections/r-9");
  await screen.findByText("This reflection is not there.");
});

test("a link to knowledge asks what it says, and shows that entry alone", async () => {
  const asked = serve({
    "LearnService/SearchKnowledge": () => ({
      entries: [
        { entry: { id: "k-1", lesson: "Another one" } },
        { entry: { id: "k-2", lesson: "Set lock_timeout first" } },
      ],
    }),
  });
  const text = "Running migrations & more";
  open(sourceHref({ sourceType: "knowledge", sourceId: "k-2", text }) ?? "");
  await screen.findByRole("heading", { name: "Set lock_timeout first" });
  expect(screen.queryByText("Another one")).toBeNull();
  expect(asked.find(({ call }) => call.endsWith("SearchKnowledge"))?.request.query).toBe(text);
  const all = screen.getByRole("link", { name: "Show all" });
  expect(all.getAttribute("href")).toBe("/knowledge?q=Running+migrations+%26+more");
});

test("a link to a skill opens it beside the list", async () => {
  serve({
    "SkillService/ListSkills": () => ({ skills: [{ id: "s-1", name: "Repair a test" }] }),
    "SkillService/GetSkill": () => ({ skill: { id: "s-1", name: "Repair a test" } }),
  });
  open("/skills/s-1");
  await screen.findByRole("heading", { name: "Repair a test" });
  expect(location.pathname + location.search).toBe("/skills?skill=s-1");
});
