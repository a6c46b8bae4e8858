/** Choosers on a real server: what worked is chosen, what came of it is learned. */

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { JsonObject } from "@bufbuild/protobuf";
import { type Mneme, MnemeError } from "@mneme/client";
import { Server } from "./support/server.js";

let server: Server;
let client: Mneme;

before(async () => {
  server = await Server.start();
});
after(() => server?.stop());
beforeEach(async () => {
  client = server.client({ apiKey: await server.newKey({ scopes: ["learn"] }) });
});

async function rewards(sessionId: string) {
  const { metrics } = await client.getLearningMetrics({ sessionId });
  return metrics?.history.map((point) => point.episodeReward);
}

test("after tens of rewards it chooses what works for the kind of task", async () => {
  const best: Record<string, string> = { auth: "oauth2", ui: "mock" };
  const among = ["oauth2", "mock", "guess"] as const;
  const ways = client.chooser("ways");
  for (let n = 0; n < 60; n++) {
    const task = n % 2 ? "auth" : "ui";
    await ways.choose(among, { state: { task_type: task } }, (choice) =>
      choice.reward(choice.action === best[task] ? 1 : 0),
    );
  }
  const settled = client.chooser("ways", { explore: false });
  for (const [task, way] of Object.entries(best)) {
    await settled.choose(among, { state: { task_type: task } }, ({ action, explored }) => {
      assert.deepEqual({ action, explored }, { action: way, explored: false });
    });
  }
});

test("it returns what the work returned, and an object can be an option", async () => {
  const ways = client.chooser("ways");
  const option = { strategy: "oauth2", retries: 2 };
  const answer = await ways.choose([option], {}, ({ action }) => action.strategy);
  assert.equal(answer, "oauth2");
});

test("a choice waits for its reward, which another process may tell by its id", async () => {
  const ways = client.chooser("ways");
  const { id } = await ways.choose(["a", "b"], {}, (choice) => choice);
  assert.deepEqual(await rewards("ways"), []);
  const elsewhere = client.chooser("ways");
  await elsewhere.reward(id, 0.5);
  assert.deepEqual(await rewards("ways"), [0.5]);
  await assert.rejects(elsewhere.reward(id, 1), { code: "ALREADY_EXISTS" });
});

test("a choice is picked and told without a block, and one reward counts once", async () => {
  const choice = await client.chooser("ways").pick(["a"], { state: { task_type: "auth" } });
  await choice.reward(true);
  await choice.reward(1);
  assert.deepEqual(await rewards("ways"), [1]);
  await assert.rejects(choice.reward(0), { code: "ALREADY_EXISTS" });
});

test("what is no number is no reward, and says so there and then", async () => {
  const choice = await client.chooser("ways").pick(["a"]);
  assert.throws(() => choice.reward("good" as unknown as number), /finite number .* not "good"/);
  assert.throws(() => choice.reward(Number.NaN), TypeError);
});

test("a reward that is refused in the work is not learned as a failure", async () => {
  const ways = client.chooser("ways", { failure: -1 });
  const work = ways.choose(["a"], {}, async (choice) => {
    await choice.reward(1);
    throw new RangeError("afterwards");
  });
  await assert.rejects(work, { message: "afterwards" });
  assert.deepEqual(await rewards("ways"), [1]);
});

test("a choice is explained", async () => {
  const ways = client.chooser("ways");
  for (let n = 0; n < 12; n++) {
    await ways.choose(["a", "b"], { state: { kind: n % 2 } }, (choice) =>
      choice.reward(choice.action === "a"),
    );
  }
  const explanation = await ways.explain({ state: { kind: 1 }, among: ["a", "b"] });
  assert.deepEqual(explanation?.action?.value, { case: "label", value: "a" });
});

test("work that fails is a failure, and its error goes on", async () => {
  const ways = client.chooser("ways", { failure: -1 });
  const work = ways.choose(["a"], {}, () => {
    throw new RangeError("broken");
  });
  await assert.rejects(work, { name: "RangeError", message: "broken" });
  assert.deepEqual(await rewards("ways"), [-1]);
});

test("when nothing can be learned from work that failed, both errors are told", async () => {
  const ways = client.chooser("ways");
  const work = ways.choose(["a"], {}, async () => {
    await client.deleteLearningSession({ sessionId: "ways" });
    throw new RangeError("broken");
  });
  await assert.rejects(work, (error: AggregateError) => {
    assert.match(String(error.errors[0]), /broken/);
    assert.ok(error.errors[1] instanceof MnemeError);
    return true;
  });
});

test("what is no list of options and no state is refused in words", async () => {
  const ways = client.chooser("ways");
  await assert.rejects(
    ways.choose("fast" as unknown as string[], {}, () => 1),
    /among: should be a list of options, not "fast"/,
  );
  await assert.rejects(
    ways.choose(["fast"], { state: "auth" as unknown as JsonObject }, () => 1),
    /state: should be an object like .* not "auth"/,
  );
});

test("without options it says so", async () => {
  await assert.rejects(
    client.chooser("ways").choose([], {}, () => 1),
    /nothing to choose from/,
  );
});
