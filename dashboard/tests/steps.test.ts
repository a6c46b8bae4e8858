import { describe, expect, test } from "vitest";
import {
  argumentsOf,
  resultOf,
  rowsOf,
  stepsOf,
  stepWith,
  titleOf,
} from "../src/pages/session/steps";

const call = (id: string, name = "grep", callId = "") => ({
  id,
  eventType: "tool_call",
  name,
  ...(callId && { callId }),
  payload: { arguments: { pattern: id } },
});
const answer = (id: string, name = "grep", callId = "") => ({
  id,
  eventType: "tool_response",
  name,
  ...(callId && { callId }),
  payload: { output: `found ${id}` },
});

describe("steps", () => {
  test("join a call with its answer by the call's id, however they are mixed", () => {
    const steps = stepsOf([
      call("a", "grep", "1"),
      call("b", "grep", "2"),
      answer("x", "grep", "2"),
      answer("y", "grep", "1"),
    ]);
    expect(steps.map((step) => [step.event.id, step.answer?.id])).toEqual([
      ["a", "y"],
      ["b", "x"],
    ]);
    expect(argumentsOf(steps[0]?.event ?? {})).toEqual({ pattern: "a" });
    expect(resultOf(steps[0]?.answer ?? {})).toBe("found y");
    expect(stepWith(steps, "x")?.event.id).toBe("b");
  });

  test("join by the tool's name where no id links them, and keep what has no call", () => {
    const steps = stepsOf([call("a"), answer("x"), answer("late")]);
    expect(steps.map((step) => [step.event.id, step.answer?.id])).toEqual([
      ["a", "x"],
      ["late", undefined],
    ]);
  });

  test("fail with a tool's error and with a severe event", () => {
    const steps = stepsOf([
      call("a", "book", "1"),
      { id: "e", eventType: "tool_error", callId: "1", error: "no seats" },
      { id: "c", eventType: "on_chain_end", severity: "SEVERITY_CRITICAL", text: "lost" },
      { id: "m", eventType: "message", text: "fine" },
    ]);
    expect(steps.map((step) => step.failed)).toEqual([true, true, false]);
  });

  test("fold what is noise, but never an error or the chosen step", () => {
    const steps = stepsOf([
      { id: "s", eventType: "session_started" },
      { id: "p", eventType: "message", text: "policy", payload: { role: "system" } },
      { id: "m", eventType: "message", text: "hello", payload: { role: "user" } },
      { id: "l1", eventType: "llm_call" },
      { id: "l2", eventType: "llm_response" },
      { id: "l3", eventType: "llm_response", severity: "SEVERITY_ERROR" },
    ]);
    const shape = (chosen: string, all = false) =>
      rowsOf(steps, all, chosen).map((row) =>
        "folded" in row ? row.folded.map((step) => step.event.id) : "event" in row && row.event.id,
      );
    expect(shape("")).toEqual([["s", "p"], "m", ["l1", "l2"], "l3"]);
    expect(shape("l2")).toEqual([["s", "p"], "m", ["l1"], "l2", "l3"]);
    expect(shape("", true)).toEqual(["s", "p", "m", "l1", "l2", "l3"]);
  });

  test("tell where events are not known, and join no call with an answer by its name there", () => {
    const at = (sequence: number, event: object) => ({ ...event, sequence: String(sequence) });
    const steps = stepsOf([
      at(1, call("a")),
      at(2, call("b", "grep", "1")),
      at(8, answer("x")),
      at(9, answer("y", "grep", "1")),
    ]);
    expect(steps.map((step) => [step.event.id, step.answer?.id, step.missing])).toEqual([
      ["a", undefined, 0],
      ["b", "y", 0],
      ["x", undefined, 5],
    ]);
    const marks = (partial: boolean) =>
      rowsOf(steps, false, "", partial).map((row) => ("leftOut" in row ? "…" : "step"));
    expect(marks(true)).toEqual(["step", "step", "…", "step"]);
    expect(marks(false)).toEqual(["step", "step", "step"]); // What is not there was forgotten.
  });

  test("have a title in one line", () => {
    const [step] = stepsOf([
      { ...call("a"), payload: { arguments: { path: "a.py", lines: [1, 2] } } },
    ]);
    expect(step && titleOf(step)).toBe("path: a.py, lines: [1,2]");
  });
});
