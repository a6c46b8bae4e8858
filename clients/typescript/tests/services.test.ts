/**
 * Every RPC of every service, called against a real server: over gRPC, and where
 * `services-http.test.ts` runs this, over HTTP.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { Mneme } from "@mneme/client";
import * as api from "@mneme/client";
import { Server } from "./support/server.js";

const NO_CALLS = new Set([
  "recordAll",
  "chooser",
  "resultOf",
  "address",
  "consistencyToken",
  "transport",
  "attempt",
  "close",
]);
const OVER_HTTP = process.env["MNEME_TEST_OVER"] === "http";
const answered = new Set<string>();

/** The same client, which remembers the methods that were answered. */
function watched(client: Mneme): Mneme {
  const methods = Object.entries(client).map(([name, member]) => {
    if (NO_CALLS.has(name)) {
      return [name, member];
    }
    const call = (...given: unknown[]) => {
      const answer = member(...given);
      return Symbol.asyncIterator in answer ? noted(name, answer) : answer.then(note(name));
    };
    return [name, call];
  });
  return Object.fromEntries(methods) as Mneme;
}

function note(name: string): <T>(answer: T) => T {
  return (answer) => {
    answered.add(name);
    return answer;
  };
}

async function* noted(name: string, messages: AsyncIterable<unknown>) {
  for await (const message of messages) {
    answered.add(name);
    yield message;
  }
}

/** What a stream of requests answers; over HTTP it is refused, and single calls do the same. */
async function uploaded<T>(
  name: keyof Mneme,
  send: () => AsyncIterable<T>,
  instead: () => Promise<unknown>,
): Promise<T[] | undefined> {
  if (!OVER_HTTP) {
    return all(send());
  }
  await assert.rejects(all(send()), (error) => {
    assert.ok(error instanceof api.MnemeError);
    assert.equal(error.code, "UNIMPLEMENTED");
    assert.match(error.message, /needs gRPC; over HTTP there is /);
    return true;
  });
  answered.add(name);
  await instead();
  return undefined;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found = [];
  for await (const item of items) {
    found.push(item);
  }
  return found;
}

let server: Server;
let client: Mneme;
let admin: Mneme;

before(async () => {
  server = await (OVER_HTTP ? Server.startOverHttp() : Server.start());
  client = watched(await server.tenant());
  admin = watched(server.admin());
});
after(() => server?.stop());

test("a session is started, filled, listed, verified and ended", async () => {
  const { session } = await client.startSession({
    sessionId: "s1",
    agentId: "builder",
    project: "invoices",
    tags: ["release"],
    metadata: { branch: "main", nested: { depth: [1, 2.5, null] } },
  });
  assert.equal(session?.id, "s1");
  assert.deepEqual(session?.metadata, { branch: "main", nested: { depth: [1, 2.5, null] } });
  const timestamp = new Date("2026-03-01T10:00:00.125Z");
  const recorded = await client.recordEvents({
    events: [
      {
        id: "s1:1",
        sessionId: "s1",
        eventType: "tool_call",
        name: "bash",
        callId: "c1",
        payload: { arguments: { command: "make release" } },
        timestamp,
        inputTokens: 120,
      },
      {
        sessionId: "s1",
        eventType: "tool_error",
        name: "bash",
        callId: "c1",
        error: "tag v2.4.0 exists already",
        duration: 3200.5,
      },
    ],
    waitIndexed: true,
  });
  assert.deepEqual(
    recorded.receipts.map((receipt) => receipt.sequence),
    [1n, 2n],
  );
  assert.match(recorded.receipts[1]?.id ?? "", /^[0-9A-HJKMNP-TV-Z]{26}$/);
  const last = {
    sessionId: "s1",
    eventType: "message" as const,
    text: "The release waits for a new number.",
  };
  const streamed = await uploaded(
    "streamEvents",
    () => client.streamEvents([last]),
    () => client.recordEvents({ events: [last] }),
  );
  assert.equal(streamed?.at(-1)?.acknowledgedCount ?? 1n, 1n);
  if (OVER_HTTP) {
    await assert.rejects(client.recordAll([last]), /UNIMPLEMENTED/);
  } else {
    assert.equal((await client.recordAll([])).recordedCount, 0);
  }
  const { events } = await client.listEvents({ sessionId: "s1" });
  const first = events.find((event) => event.id === "s1:1");
  const failed = events.find((event) => event.error);
  assert.equal(first?.timestamp && api.toDate(first.timestamp).getTime(), timestamp.getTime());
  assert.equal(first?.inputTokens, 120n);
  assert.equal(failed?.duration && api.toMilliseconds(failed.duration), 3200.5);
  assert.equal(failed?.eventType, "tool_error");
  assert.equal((await client.getSession({ sessionId: "s1" })).session?.errorCount, 1n);
  assert.equal((await client.listSessions({ project: "invoices" })).totalSize, 1n);
  assert.equal((await client.listAgents()).agents[0]?.id, "builder");
  assert.equal((await client.verifyEvents({ sessionId: "s1" })).eventsChecked, 3n);
  const ended = await client.endSession({ sessionId: "s1", status: "error" });
  assert.equal(ended.session?.status, api.SessionStatus.ERROR);
  assert.equal(ended.session?.outcome, api.Outcome.FAILURE);
  const graded = await client.gradeSession({ sessionId: "s1", reward: 0.75, grader: "tests" });
  assert.equal(graded.session?.outcome, api.Outcome.SUCCESS);
  const grades = [{ sessionId: "s1", outcome: "partial" as const, source: "person" as const }];
  assert.equal((await client.recordGrades({ grades })).recordedCount, 1);
  assert.equal((await client.listGrades({ sessionId: "s1" })).grades.length, 2);
  assert.equal((await all(client.iterGrades({ sessionId: "s1" }))).length, 2);
});

test("recorded events are watched from a cursor on", async () => {
  for await (const message of client.watchEvents({ afterCursor: "0" })) {
    if (message.event?.error) {
      assert.equal(message.event.error, "tag v2.4.0 exists already");
      break;
    }
  }
});

test("walks go over all pages", async () => {
  await client.startSession({ sessionId: "s2", agentId: "reviewer", project: "invoices" });
  const sessions = await all(client.iterSessions({ pageSize: 1 }));
  assert.deepEqual(sessions.map((session) => session.id).sort(), ["s1", "s2"]);
  assert.equal((await all(client.iterEvents({ sessionId: "s1", pageSize: 1 }))).length, 3);
  const { nextPageToken: pageToken } = await client.listSessions({ pageSize: 1 });
  assert.equal((await all(client.iterSessions({ pageSize: 1, pageToken }))).length, 1);
  assert.equal((await all(client.iterAgents({ pageSize: 1 }))).length, 2);
});

test("what was recorded is recalled", async () => {
  const answer = await client.recall({
    query: "the version number is taken",
    scopes: ["event", "lesson"],
    mode: "hybrid",
    startTime: new Date("2026-01-01T00:00:00Z"),
    explain: true,
    limit: 3,
  });
  assert.equal(answer.outcome, api.RecallOutcome.FOUND);
  assert.ok(answer.results.some((result) => result.text.includes("v2.4.0")));
  assert.ok(answer.results[0]?.terms.length);
});

test("lessons are kept, found, changed, moved and archived", async () => {
  await client.createLesson({
    lessonId: "tags",
    title: "Tags are never moved",
    content: "A release that failed after its tag was pushed gets a new number.",
    category: "release",
    importance: "high",
  });
  const { lesson } = await client.getLesson({ lessonId: "tags" });
  assert.equal(lesson?.importance, api.Importance.HIGH);
  const found = await client.searchLessons({ query: "can I reuse a release number" });
  assert.equal(found.results[0]?.lesson?.id, "tags");
  const changed = await client.updateLesson({
    lesson: { id: "tags", content: "Use a new number after a failed release." },
  });
  assert.equal(changed.lesson?.title, "Tags are never moved");
  assert.equal(changed.lesson?.content, "Use a new number after a failed release.");
  const exported = await all(client.exportLessons());
  const lessons = exported.flatMap((one) => one.lesson ?? []);
  const copies = lessons.map((one) => ({ ...one, id: "copy", title: "A copy" }));
  const imported = await client.importLessons({ lessons: copies, onConflict: "skip" });
  assert.equal(imported.createdCount, 1);
  assert.equal((await client.listLessons({ filter: { category: "release" } })).totalSize, 2n);
  assert.equal((await all(client.iterLessons({ pageSize: 1 }))).length, 2);
  await client.archiveLesson({ lessonId: "copy" });
  assert.equal((await client.listLessons()).totalSize, 1n);
  await client.unarchiveLesson({ lessonId: "copy" });
  assert.equal((await client.listLessons()).totalSize, 2n);
  await client.deleteLesson({ lessonId: "copy" });
  await assert.rejects(client.getLesson({ lessonId: "copy" }), { code: "NOT_FOUND" });
});

test("a lesson that has changed since it was read is not overwritten", async () => {
  const { lesson } = await client.createLesson({ title: "Ports", content: "Ask for port 0." });
  const { id = "", etag = "" } = lesson ?? {};
  const { lesson: changed } = await client.updateLesson({ lesson: { id, etag, title: "A port" } });
  assert.notEqual(changed?.etag, etag);
  const late = client.updateLesson({ lesson: { id, etag, title: "Any port" } });
  await assert.rejects(late, { code: "ABORTED", reason: "ETAG_MISMATCH" });
  await assert.rejects(client.archiveLesson({ lessonId: id, etag }), { code: "ABORTED" });
  assert.equal((await client.getLesson({ lessonId: id })).lesson?.title, "A port");
  await client.archiveLesson({ lessonId: id, etag: changed?.etag ?? "" });
});

test("reflections are stored, listed, searched and summarised", async () => {
  await client.createReflection({
    sessionId: "s1",
    project: "invoices",
    taskDescription: "Release the invoices service",
    attemptNumber: 1,
    outcome: "failure",
    whatDidNotWork: ["pushing the tag before the tests ran"],
    nextStrategy: "run the tests first",
    tags: ["release"],
  });
  const { reflections } = await client.listReflections({ filter: { sessionId: "s1" } });
  assert.equal(reflections[0]?.outcome, api.Outcome.FAILURE);
  assert.equal((await all(client.iterReflections())).length, 1);
  const found = await client.searchReflections({ taskDescription: "release a service" });
  assert.equal(found.results.length, 1);
  assert.equal((await client.summarizeReflections()).totalReflections, 1n);
  const reflectionId = reflections[0]?.id ?? "";
  const { reflection } = await client.getReflection({ reflectionId });
  const changed = await client.updateReflection({
    reflection: { id: reflectionId, etag: reflection?.etag ?? "", nextStrategy: "ask first" },
  });
  assert.equal(changed.reflection?.nextStrategy, "ask first");
  await client.deleteReflection({ reflectionId });
  assert.equal((await client.listReflections()).totalSize, 0n);
});

test("knowledge is logged and queried", async () => {
  await client.createKnowledge({
    project: "invoices",
    type: "error",
    context: "make release",
    lesson: "the tag must not exist before the release",
    timestamp: new Date("2026-03-01T10:00:00Z"),
  });
  const { markdown, entries } = await client.searchKnowledge({ query: "release tag" });
  assert.equal(entries.length, 1);
  assert.match(markdown, /the tag must not exist/);
  const [listed] = (await client.listKnowledge({ filter: { project: "invoices" } })).entries;
  const entryId = listed?.id ?? "";
  assert.equal((await all(client.iterKnowledge())).length, 1);
  assert.equal((await client.getKnowledge({ entryId })).entry?.etag, listed?.etag);
  const { entry } = await client.updateKnowledge({ entry: { id: entryId, lesson: "no tag yet" } });
  assert.equal(entry?.lesson, "no tag yet");
  await client.deleteKnowledge({ entryId });
  await assert.rejects(client.getKnowledge({ entryId }), { code: "NOT_FOUND" });
});

test("sessions are reflected upon", async () => {
  const answer = await client.reflect({ analysis: "error_patterns" });
  assert.equal(answer.result.case, "errorPatterns");
  assert.equal(answer.metadata?.sessionsAnalyzed, 2n);
  const weekly = await client.reflect({
    params: { case: "costAnalysis", value: { bucket: "week" } },
  });
  assert.equal(weekly.result.case, "costAnalysis");
  assert.equal(weekly.result.case === "costAnalysis" && weekly.result.value.bucketSeconds, 604800n);
});

test("a session's end is handed over to the next one", async () => {
  const slept = await client.sleep({
    sessionId: "s1",
    progress: ["the release is prepared"],
    openTodos: [{ content: "choose a new number" }],
    decisions: [{ decision: "tags are never moved", rationale: "others have fetched them" }],
    files: ["Makefile"],
  });
  assert.deepEqual(slept.handover?.progress, ["the release is prepared"]);
  const woken = await client.wakeUp({ project: "invoices" });
  assert.equal(woken.lastHandover?.sessionId, "s1");
  assert.ok((await client.getContext({ topic: "release number" })).totalSessions);
  const { text, items } = await client.context({ topic: "release number" });
  assert.match(text, /release/);
  assert.ok(items.length > 0);
  const known = await client.profile({ userId: "nobody-yet" });
  assert.deepEqual([known.text, known.items], ["", []]);
  assert.deepEqual(known, await client.getProfile({ userId: "nobody-yet" }));
  assert.ok((await client.searchSessions({ query: "release" })).results.length);
  assert.equal((await client.getTimeline({ project: "invoices" })).entries.length, 2);
  assert.equal((await all(client.iterGetTimeline({ pageSize: 1 }))).length, 2);
});

test("memories are kept once, replaced, found and deleted", async () => {
  const text = "The buyer prefers invoices by post.";
  const { memory } = await client.remember({ text, userId: "ann", metadata: { page: 3 } });
  const again = await client.createMemory({ text, userId: "ann" });
  assert.ok(again.alreadyKnown);
  const newer = { text: "The buyer wants invoices by email.", userId: "ann" };
  const { similar } = await client.remember(newer);
  assert.deepEqual(
    similar.map((one) => one.memory?.id),
    [memory?.id],
  );
  const { superseded } = await client.remember({ ...newer, supersedes: [memory?.id ?? ""] });
  assert.equal(superseded.length, 1);
  const { results } = await client.recall({ query: text, userId: "ann", scopes: ["memory"] });
  assert.equal(results[0]?.text, newer.text);
  assert.equal(results[0]?.older?.sourceId, memory?.id);
  const rows = [{ text: "one row" }, { text: "another row", tags: ["row"] }];
  const acknowledged = await uploaded(
    "createMemories",
    () => client.createMemories(rows),
    () => Promise.all(rows.map((row) => client.createMemory(row))),
  );
  assert.equal(acknowledged?.at(-1)?.insertedCount ?? 2n, 2n);
  const kept = await client.getMemory({ memoryId: memory?.id ?? "" });
  assert.equal(kept.memory?.supersededBy, results[0]?.sourceId);
  await client.updateMemory({ memory: { id: memory?.id ?? "", tags: ["old"] } });
  const where = [{ key: "page", comparison: "at_least" as const, number: 3 }];
  const filter = { userId: "ann", anyTags: ["old"], where };
  const listed = await client.listMemories({ filter, includeSuperseded: true });
  assert.equal(listed.memories[0]?.id, memory?.id);
  assert.equal((await all(client.iterMemories({ pageSize: 1 }))).length, 3);
  const found = await client.searchMemories({ query: "how are bills sent?", limit: 1 });
  assert.equal(found.results[0]?.memory?.text, newer.text);
  const deleted = await client.deleteMemories({ filter: { tags: ["row"] } });
  assert.equal(deleted.deletedCount, 1n);
});

test("patterns are found in memories, and what there is is told", async () => {
  const { memory } = await client.createMemory({ text: "Ticket T-481 is open" });
  const memoryId = memory?.id ?? "";
  const regex = { expression: "T-(\\d+)" };
  const { pattern } = await client.createPattern({ name: "tickets", regex });
  assert.equal((await client.getPattern({ name: "tickets" })).pattern?.id, pattern?.id);
  const found = await client.matchPattern({ name: "tickets" });
  assert.equal(found.results[0]?.matches[0]?.text, "T-481");
  const verdicts = [{ memoryId, right: true }];
  await client.recordPatternMatches({ name: "tickets", verdicts });
  const told = await client.listPatternStats({ name: "tickets" });
  assert.equal(told.stats[0]?.successRate, 1);
  assert.equal((await client.listPatterns()).totalSize, 1n);
  assert.equal((await all(client.iterPatterns())).length, 1);
  assert.equal((await all(client.iterPatternStats())).length, 1);
  const renamed = { id: pattern?.id ?? "", description: "numbers of tickets" };
  const changed = await client.updatePattern({ pattern: renamed });
  assert.equal(changed.pattern?.description, renamed.description);
  assert.equal((await client.deletePattern({ name: "tickets" })).pattern?.name, "tickets");
  const stats = await client.getMemoryStats({ includeQuality: true });
  assert.ok((stats.counts?.memories ?? 0n) > 0n);
  assert.equal((await client.openMemory()).database?.path, stats.database?.path);
  assert.equal((await client.clearCache({ caches: ["patterns"] })).cleared.length, 1);
});

test("attempts are kept and found, and skills made of them", async () => {
  const task = "Cancel a reservation bought with a certificate";
  const critique = "Certificates are not refundable.";
  const { episode } = await client.createEpisode({ task, success: false, critique });
  const episodeId = episode?.id ?? "";
  assert.equal((await client.getEpisode({ episodeId })).episode?.reward, 0);
  await client.updateEpisode({ episode: { id: episodeId, tags: ["refunds"] } });
  const found = await client.searchEpisodes({ task: "refund a certificate" });
  assert.equal(found.results[0]?.episode?.id, episodeId);
  assert.match(found.critiques?.text ?? "", /not refundable/);
  await client.importEpisodes({ episodes: [{ id: "worked", task, reward: 1 }] });
  assert.equal((await client.listEpisodes()).episodes.length, 2);
  assert.equal((await all(client.iterEpisodes({ pageSize: 1 }))).length, 2);
  assert.equal((await all(client.exportEpisodes({}))).length, 2);
  await client.deleteEpisode({ episodeId });

  const { skill } = await client.createSkill({
    name: "sign_in",
    description: "Sign in by OAuth 2.",
  });
  const skillId = skill?.id ?? "";
  await client.updateSkill({ skill: { id: skillId, project: "shop" } });
  const used = await client.recordSkillUse({ skillId, success: true, reward: 0.9 });
  assert.equal(used.skill?.record?.uses, 1n);
  const part = await client.createSkill({ name: "ask_for_a_token" });
  const link = { parentSkillId: skillId, childSkillId: part.skill?.id ?? "" };
  await client.linkSkills({ ...link, relationship: "composition" });
  assert.equal((await client.getSkill({ skillId })).links.length, 1);
  await client.unlinkSkills(link);
  assert.equal((await client.listSkills()).skills.length, 2);
  assert.equal((await all(client.iterSkills({ pageSize: 1 }))).length, 2);
  const best = await client.searchSkills({ task: "sign in with an identity provider" });
  assert.equal(best.results[0]?.skill?.id, skillId);
  const made = await client.consolidateSkills({ minAttempts: 1, dryRun: true });
  assert.equal(made.episodeCount, 1n);
  await client.deleteSkill({ skillId });
});

test("rules that watch what is recorded are kept", async () => {
  const ruleId = "a-fortune";
  await client.createAlertRule({
    ruleId,
    name: "It costs a fortune",
    condition: "cost_exceeds",
    threshold: 1_000_000,
  });
  const { rule } = await client.getAlertRule({ ruleId });
  assert.deepEqual([rule?.enabled, rule?.windowMinutes], [true, 60]);
  const changed = await client.updateAlertRule({ rule: { id: ruleId, threshold: 2_000_000 } });
  assert.equal(changed.rule?.threshold, 2_000_000);
  assert.equal((await client.listAlertRules()).rules.length, 1);
  assert.equal((await all(client.iterAlertRules())).length, 1);
  await client.recordEvents({
    events: [{ sessionId: "watched", eventType: "message", text: "!" }],
  });
  await client.createAlertRule({ ruleId: "busy", name: "Busy", condition: "event_count_exceeds" });
  while ((await client.listAlertHistory({ ruleId: "busy" })).entries.length === 0) {
    await setTimeout(50);
  }
  assert.equal((await all(client.iterAlertHistory())).length, 1);
  const tried = await client.tryAlertRule({ ruleId });
  assert.equal(tried.summary, "would not have triggered in 1 week");
  await client.updateAlertRule({
    rule: { id: ruleId, notifyChannels: ["https://nobody.invalid/"] },
  });
  const { deliveries } = await client.testAlertRule({ ruleId });
  assert.equal(deliveries[0]?.error, "the name nobody.invalid cannot be resolved");
  const { secret } = await client.getWebhookSecret();
  assert.notEqual((await client.rotateWebhookSecret()).secret, secret);
  await client.deleteAlertRule({ ruleId });
});

test("what brings about what is kept, followed, tried out and looked for", async () => {
  const stated = { cause: "tag:shared-fixtures", effect: "tests_pass" };
  const { edge } = await client.createEdge({ ...stated, uplift: 0.25 });
  const edgeId = edge?.id ?? "";
  assert.equal((await client.getEdge({ edgeId })).edge?.uplift, 0.25);
  assert.equal((await client.updateEdge({ edge: { id: edgeId, uplift: 0.5 } })).edge?.uplift, 0.5);
  assert.equal((await client.listEdges()).edges.length, 1);
  assert.equal((await all(client.iterEdges())).length, 1);
  const { chains } = await client.traceEffects({ cause: stated.cause });
  assert.equal(chains[0]?.uplift, 0.5);
  await client.deleteEdge({ edgeId });

  const experimentId = "review-first";
  await client.createExperiment({ ...stated, experimentId, name: "Review first", seed: "s" });
  await client.updateExperiment({ experiment: { id: experimentId, name: "Reviews first" } });
  const subject = "pull-request-7";
  const assigned = await client.assignTreatment({ experimentId, subject });
  assert.equal(assigned.alreadyAssigned, false);
  await client.recordObservation({ experimentId, subject, outcome: 1 });
  assert.ok((await client.analyzeExperiment({ experimentId })).result);
  await client.concludeExperiment({ experimentId, withoutEdge: true });
  assert.equal((await client.getExperiment({ experimentId })).experiment?.id, experimentId);
  assert.equal((await client.listExperiments()).experiments.length, 1);
  assert.equal((await all(client.iterExperiments())).length, 1);
  await client.deleteExperiment({ experimentId });

  await admin.discover({ question: { dryRun: true }, operationId: "discover" });
  await admin.resultOf("discover", api.DiscoverResultSchema);
  await admin.updateDiscoverySchedule({ enabled: true, time: "02:30", question: { fdr: 0.1 } });
  const { schedule } = await admin.getDiscoverySchedule();
  assert.deepEqual([schedule?.time, schedule?.question?.fdr], ["02:30", 0.1]);
});

test("what was recalled is certified, and the log that proves it can be audited", async () => {
  const { certificate } = await client.recallWithCertificate({ query: "invoices", limit: 3 });
  const certificateId = certificate?.id ?? "";
  const kept = await client.getCertificate({ certificateId });
  assert.equal(kept.certificate?.json, certificate?.json);
  assert.ok((await client.verifyCertificate({ json: certificate?.json ?? "" })).valid);
  assert.ok(await client.getCheckpoint());
  assert.ok(await client.getConsistencyProof({ oldSize: 1n, newSize: 1n }));
  const { memory } = await client.remember({ text: "Every leaf has its place." });
  const sourceId = memory?.id ?? "";
  assert.ok(await client.getInclusionProof({ sourceType: "memory", sourceId }));
  const { keys } = await client.listLogKeys();
  await admin.rotateLogKey();
  assert.ok((await admin.listLogKeys()).keys.length >= keys.length);
});

test("a session learns which action works, explains it, and hands it on", async () => {
  const learner = watched(
    server.client({ apiKey: await server.newKey({ scopes: ["learn", "read"] }) }),
  );
  const state = (value: { [key: string]: string }) => ({ value: { case: "json" as const, value } });
  const label = (value: string) => ({ value: { case: "label" as const, value } });
  const { algorithms } = await learner.listAlgorithms();
  assert.ok(algorithms.some((one) => one.name === "q_learning" && one.keys.length));
  const sessionId = "ways";
  await learner.startLearningSession({ sessionId, algorithm: "q_learning" });
  const steps = ["good", "bad"].map((one) => ({
    state: state({ task: "auth" }),
    action: label(one),
    reward: one === "good" ? 1 : 0,
  }));
  await learner.recordExperience({ sessionId, steps });
  const trajectory = { sessionId, trajectoryId: "on-monday", steps };
  const acknowledged = await uploaded(
    "recordTrajectories",
    () => learner.recordTrajectories([trajectory]),
    () => learner.recordExperience({ sessionId, steps }),
  );
  assert.equal(acknowledged?.length ?? 1, 1);
  const { trajectories } = await learner.listTrajectories({ sessionId });
  assert.equal((await all(learner.iterTrajectories({ sessionId }))).length, trajectories.length);
  const stateFields = [{ path: "project" }];
  const imported = { sessionId, stateFields, dryRun: true };
  assert.ok((await all(learner.importExperience(imported))).length);
  const told = await all(learner.train({ sessionId, numSteps: 5 }));
  assert.equal(told.at(-1)?.stepsCompleted, 5n);
  const { prediction } = await learner.predict({ sessionId, state: state({ task: "auth" }) });
  assert.deepEqual(prediction?.action?.value, label("good").value);
  await learner.feedback({ predictionId: prediction?.predictionId ?? "", reward: 1 });
  const acted = await uploaded(
    "act",
    () => learner.act([{ sessionId, states: [{ state: state({ task: "auth" }) }] }]),
    () => learner.predict({ sessionId, state: state({ task: "auth" }) }),
  );
  assert.equal(acted?.[0]?.predictions.length ?? 1, 1);
  assert.equal((await learner.getLearningMetrics({ sessionId })).metrics?.transitions, 5n);
  assert.ok(await learner.explain({ sessionId, state: state({ task: "auth" }) }));
  const shaped = await learner.shapeReward({ sessionId, extrinsicReward: 1, state: state({}) });
  assert.ok(Number.isFinite(shaped.shapedReward));
  await learner.startLearningSession({ sessionId: "next", algorithm: "q_learning" });
  await learner.transfer({
    sourceSessionId: sessionId,
    targetSessionId: "next",
    similarityThreshold: 0,
  });
  const { session } = await learner.getLearningSession({ sessionId });
  assert.equal(session?.transitions, 5n);
  assert.equal((await learner.listLearningSessions()).sessions.length, 2);
  assert.equal((await all(learner.iterLearningSessions({ pageSize: 1 }))).length, 2);
  const { modelBytes, modelPath } = await learner.endLearningSession({ sessionId });
  assert.match(modelPath, /models/);
  const [first, ...parts] = await all(learner.downloadModel({ sessionId }));
  assert.equal(first?.model?.sizeBytes, modelBytes);
  const model = Buffer.concat(parts.map((part) => part.data));
  assert.equal(BigInt(model.length), modelBytes);
  assert.equal(createHash("sha256").update(model).digest("hex"), first?.model?.sha256);
  await learner.deleteLearningSession({ sessionId });
});

test("tenants and keys are managed", async () => {
  assert.equal((await admin.whoAmI()).tenantId, "default");
  await admin.createTenant({ tenantId: "other", displayName: "Other" });
  const made = await admin.createApiKey({ tenantId: "other", name: "reader", scopes: ["read"] });
  assert.match(made.secret, /^mn_/);
  assert.deepEqual(made.apiKey?.scopes, [api.KeyScope.READ]);
  const { apiKeys } = await admin.listApiKeys({ tenantId: "other" });
  assert.equal(apiKeys.length, 1);
  assert.equal((await all(admin.iterApiKeys({ tenantId: "other" }))).length, 1);
  await admin.revokeApiKey({ apiKeyId: made.apiKey?.id ?? "" });
  assert.ok((await admin.listTenants()).tenants.some((tenant) => tenant.id === "other"));
  assert.ok((await all(admin.iterTenants({ pageSize: 1 }))).length >= 3);
  assert.equal((await admin.getStats({ tenantId: "other" })).tenant?.eventCount, 0n);
  await admin.resultOf(
    await admin.deleteTenant({ tenantId: "other" }),
    api.DeleteTenantResultSchema,
  );
});

test("operations are started, listed, waited for and cancelled", async () => {
  await admin.createTenant({ tenantId: "moved" });
  await admin.backup({ tenantId: "moved", operationId: "kept" });
  const backup = await admin.resultOf("kept", api.BackupResultSchema);
  const name = backup.path.slice(backup.path.lastIndexOf("/") + 1);
  await admin.restore({ tenantId: "moved", backup: name, operationId: "back" });
  assert.ok((await admin.resultOf("back", api.RestoreResultSchema)).replacedSizeBytes > 0n);
  const told = await admin.forget({ tenantId: "moved", userId: "ann", dryRun: true });
  assert.deepEqual((await admin.resultOf(told, api.ForgetReceiptSchema)).counts, []);
  await admin.forget({ tenantId: "moved", userId: "ann", operationId: "nobody" });
  const forgotten = await admin.resultOf("nobody", api.ForgetReceiptSchema);
  assert.equal(forgotten.signature.length, 64);
  await admin.reindex({ tenantId: "moved", operationId: "again" });
  await admin.waitOperation({ operationId: "again", maxWait: 1_000 });
  await admin.resultOf("again", api.ReindexResultSchema);
  await admin.cancelOperation({ operationId: "again" });
  await admin.moveTenant({ tenantId: "moved", database: "", operationId: "stays" });
  assert.equal((await admin.resultOf("stays", api.MoveTenantResultSchema)).database, "");
  await admin.deleteTenant({ tenantId: "moved", operationId: "gone" });
  await admin.resultOf("gone", api.DeleteTenantResultSchema);
  assert.equal((await admin.getOperation({ operationId: "gone" })).operation?.id, "gone");
  assert.ok((await admin.listOperations()).operations.length >= 4);
  assert.ok((await all(admin.iterOperations({ pageSize: 1 }))).length >= 4);
});

test("every method of the client was called here and answered", () => {
  const methods = Object.keys(admin).filter((name) => !NO_CALLS.has(name));
  assert.deepEqual(
    methods.filter((name) => !answered.has(name)),
    [],
  );
});

test("every RPC of the schemas has a method", () => {
  const services = Object.values(api).filter(
    (one) => typeof one === "object" && "kind" in one && one.kind === "service",
  );
  const rpcs = services.flatMap((service) => service.methods.map((method) => method.localName));
  const methods = Object.keys(admin).filter(
    (name) => !NO_CALLS.has(name) && !/^iter[A-Z]/.test(name),
  );
  assert.ok(services.length >= 6);
  const everyday = ["remember", "context", "profile"]; // Second names.
  assert.equal(methods.length, rpcs.length + everyday.length);
});
