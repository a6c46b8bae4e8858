/** `createMneme({ local: folder })`: a memory without a server to start. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { ConfigurationError, createMneme, type Mneme } from "@mneme/client";
import { failure } from "./support/failing.js";
import { PACKAGE } from "./support/paths.js";
import { MODELS, SERVER } from "./support/server.js";

const run = promisify(execFile);
const variables = { ...process.env };
let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "mneme-ts-"));
  process.env["MNEME_SERVER"] = SERVER;
  process.env["MNEME_MODEL_DIR"] = MODELS;
  process.env["MNEME_LINGER_SECONDS"] = "1";
});
after(async () => {
  process.env = variables;
  await rm(folder, { recursive: true, force: true });
});

const recorded = (name: string): { pid: number; state: string; address: string } =>
  JSON.parse(readFileSync(join(folder, name, "local.json"), "utf8"));

async function until(holds: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 60_000;
  while (!holds()) {
    assert.ok(performance.now() < end, `not within a minute: ${what}`);
    await sleep(50);
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function record(mneme: Mneme, text: string): Promise<void> {
  await mneme.recordEvents({ events: [{ sessionId: "s1", eventType: "message", text }] });
}

async function texts(mneme: Mneme): Promise<string[]> {
  const { events } = await mneme.listEvents();
  return events.map((event) => event.text).sort();
}

test("clients share one server, which is started again when it dies, and ends by itself", async () => {
  const path = join(folder, "shared");
  const one = createMneme({ local: path, timeoutMs: 120_000 }); // It includes a start.
  const other = createMneme({ local: path, timeoutMs: 120_000 });
  assert.equal(one.address, path);
  await Promise.all([record(one, "a"), record(other, "b")]);
  assert.equal(one.address, other.address);
  const { pid } = recorded("shared");
  process.kill(pid, "SIGKILL");
  await until(() => !isRunning(pid), "it is gone");
  await record(one, "c");
  assert.deepEqual(await texts(other), ["a", "b", "c"]);
  assert.notEqual(recorded("shared").pid, pid);
  one.close();
  other.close();
  await until(() => !isRunning(recorded("shared").pid), "the server ends by itself");
  assert.equal((await failure(one.listEvents())).code, "CANCELLED");
});

test("a process that does not close its client ends all the same", async () => {
  const path = join(folder, "left");
  const program = `
    import { createMneme } from "@mneme/client";
    const mneme = createMneme({ local: ${JSON.stringify(path)}, timeoutMs: 100_000 });
    console.log((await mneme.listEvents()).events.length);`;
  const given = ["--input-type=module", "-e", program];
  const { stdout } = await run(process.execPath, given, { cwd: PACKAGE, timeout: 120_000 });
  assert.equal(stdout.trim(), "0");
  await until(() => !isRunning(recorded("left").pid), "the server ends by itself");
});

test("what stands in the way is said", async () => {
  const missing = createMneme({ local: join(folder, "none"), serverCommand: "/no/such/server" });
  const error = await failure(missing.listEvents());
  assert.equal(error.code, "FAILED_PRECONDITION");
  assert.match(error.message, /\/no\/such\/server/);
  const { MNEME_SERVER, PATH, ...others } = process.env;
  const before = process.env;
  process.env = { ...others, PATH: "/nowhere" };
  const uninstalled = await failure(createMneme({ local: join(folder, "none") }).listEvents());
  process.env = before;
  assert.match(uninstalled.message, /extra `server`.*serverCommand or MNEME_SERVER/);
  writeFileSync(join(folder, "file"), "in the way");
  const refused = await failure(createMneme({ local: join(folder, "file/memory") }).listEvents());
  assert.match(refused.message, /did not start.*Not a directory/);
  assert.ok(!existsSync(join(folder, "none")));
});

test("a server that cannot be joined is refused with both versions", async () => {
  const path = join(folder, "other");
  mkdirSync(path);
  const serving = { state: "serving", version: "9.8.7", format: 2, api: ["mneme.v1"] };
  writeFileSync(join(path, "local.json"), JSON.stringify(serving));
  const error = await failure(createMneme({ local: path }).listEvents());
  assert.match(error.message, /Mneme 9\.8\.7.*Mneme 0\.1\.0/);
});

test("a folder goes without an address and a key", () => {
  assert.throws(() => createMneme({ local: folder, apiKey: "mn_x" }), ConfigurationError);
  assert.throws(() => createMneme({ local: "" }), ConfigurationError);
});
