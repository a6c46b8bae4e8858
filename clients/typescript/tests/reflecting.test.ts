/** Attempts on a real server: lessons before the work, a reflection after it. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Mneme, Outcome, tagsOf } from "@mneme/client";
import { Server } from "./support/server.js";

let server: Server;
let client: Mneme;

before(async () => {
  server = await Server.start();
});
after(() => server?.stop());

async function stored() {
  return (await client.listReflections()).reflections;
}

test("a success is stored with what worked and the tags of its task", async () => {
  client = await server.tenant();
  const about = { sessionId: "s1", project: "p" };
  const answer = await client.attempt("Fix the CSV test", about, async (attempt) => {
    assert.equal(attempt.text, "");
    attempt.worked("used the csv module");
    return 5;
  });
  assert.equal(answer, 5);
  const [one] = await stored();
  assert.equal(one?.outcome, Outcome.SUCCESS);
  assert.deepEqual(one.whatWorked, ["used the csv module"]);
  assert.equal(one.nextStrategy, "Continue with this approach");
  assert.deepEqual(one.tags, ["debugging", "testing"]);
});

test("a failure is stored with its error, which goes on, and with what worked before", async () => {
  client = await server.tenant();
  await client.attempt("Parse CSV files", { sessionId: "s1" }, (one) => one.worked("the module"));
  const [lesson] = await stored();
  const work = client.attempt("Write a CSV parser", { sessionId: "s2" }, (attempt) => {
    assert.match(attempt.text, /the module/);
    throw new RangeError("bad delimiter");
  });
  await assert.rejects(work, { name: "RangeError", message: "bad delimiter" });
  const [failed] = await stored();
  assert.equal(failed?.outcome, Outcome.FAILURE);
  assert.deepEqual(failed.whatDidNotWork, ["RangeError: bad delimiter"]);
  assert.equal(failed.nextStrategy, "Try: the module");
  assert.deepEqual(failed.appliedReflectionIds, [lesson?.id]);
});

test("a failure is stored whose words are no text, or end in a character of two halves", async () => {
  client = await server.tenant();
  const longest = `${"x".repeat(4096 - "Error: ".length - 1)}\u{1f600}`;
  for (const message of ["a\0b \ud83d", longest]) {
    const work = client.attempt("Parse CSV", { sessionId: "s" }, () => {
      throw new Error(message);
    });
    await assert.rejects(work, { name: "Error", message });
  }
  const [long, odd] = await stored();
  assert.deepEqual(odd?.whatDidNotWork, ["Error: a?b ?"]);
  assert.deepEqual(long?.whatDidNotWork, [`Error: ${longest}`]);
});

test("the last fifty notes of each kind are stored, and why the work failed", async () => {
  client = await server.tenant();
  const work = client.attempt("Parse CSV", { sessionId: "s" }, (attempt) => {
    for (let number = 0; number < 60; number++) {
      attempt.worked(`way ${number}`);
      attempt.didNotWork(`row ${number}\0${"x".repeat(5000)}`);
    }
    throw new Error("too many");
  });
  await assert.rejects(work, { name: "Error", message: "too many" });
  const [one] = await stored();
  assert.equal(one?.whatWorked.length, 50);
  assert.equal(one.whatWorked[0], "way 10");
  assert.equal(one.whatDidNotWork.length, 50);
  assert.match(one.whatDidNotWork[0] ?? "", /^row 11\?x/);
  assert.equal(one.whatDidNotWork[49], "Error: too many");
});

test("no reflection is lost to empty notes, long texts or many tags", async () => {
  client = await server.tenant();
  const numbered = Array.from({ length: 70 }, (_, number) => `tag ${number + 10}`);
  const tags = ["", ...numbered, "line\nline", "x".repeat(101)];
  await client.attempt("t".repeat(8193), { sessionId: "s", tags }, (attempt) => {
    attempt.worked("");
    attempt.worked("\u{1f600}".repeat(4096));
    attempt.worked("b".repeat(4097));
    attempt.didNotWork("");
    attempt.nextStrategy = `${"c".repeat(8192)}\ud83d`;
  });
  const [one] = await stored();
  assert.equal(one?.taskDescription, `${"t".repeat(8191)}…`);
  assert.deepEqual(one.whatWorked, ["\u{1f600}".repeat(4096), `${"b".repeat(4095)}…`]);
  assert.deepEqual(one.whatDidNotWork, []);
  assert.equal(one.nextStrategy, `${"c".repeat(8191)}…`);
  assert.deepEqual(one.tags, ["line?line", ...numbered.slice(8), `${"x".repeat(99)}…`]);
});

test("an attempt stores nothing, or loads nothing either, when it is told so", async () => {
  client = await server.tenant();
  await client.attempt("Parse CSV", { sessionId: "s1", tags: ["csv"] }, (one) => one.partial());
  await client.attempt("Parse CSV", { sessionId: "s2", autoReflect: false }, (attempt) => {
    assert.equal(attempt.past.length, 1);
  });
  await client.attempt("Parse CSV", { sessionId: "s3", enabled: false }, (attempt) => {
    assert.equal(attempt.past.length, 0);
  });
  await client.attempt(
    "Parse CSV",
    { sessionId: "s4", autoReflect: false, includePastLessons: 0 },
    (attempt) => assert.equal(attempt.past.length, 0),
  );
  const all = await stored();
  assert.deepEqual(
    all.map((one) => [one.sessionId, one.outcome, one.tags]),
    [["s1", Outcome.PARTIAL, ["csv"]]],
  );
});

test("the error of the work is not lost when its reflection cannot be stored", async () => {
  const lost = client.attempt("Parse CSV", { sessionId: "", includePastLessons: 0 }, () => {
    throw new RangeError("bad delimiter");
  });
  await assert.rejects(lost, (error: AggregateError) => {
    assert.equal(error.errors[0].message, "bad delimiter");
    assert.equal(error.errors[1].code, "INVALID_ARGUMENT");
    return true;
  });
});

test("a task says its tags by whole words", () => {
  assert.deepEqual(tagsOf("Fix authentication timeout"), ["authentication", "debugging"]);
  assert.deepEqual(tagsOf("Test the OAuth login"), ["authentication", "testing"]);
  assert.deepEqual(tagsOf("Run test_capture again"), ["testing"]);
  assert.deepEqual(tagsOf("Refactoring the error handling"), ["debugging", "refactoring"]);
  assert.deepEqual(tagsOf("Write to the author of the latest prefix"), []);
});
