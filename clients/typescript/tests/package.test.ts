/** What is published: the build and its declarations, and nothing else. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PACKAGE } from "./support/paths.js";

let folder: string;
let files: string[];

before(() => {
  folder = mkdtempSync(join(tmpdir(), "mneme-ts-"));
  const packed = execFileSync(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--pack-destination", folder],
    { cwd: PACKAGE, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] },
  );
  files = JSON.parse(packed)[0].files.map((file: { path: string }) => file.path);
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("the package holds the build, the readme and the licence", () => {
  const others = files.filter((file) => !/^dist\/.*\.(js|d\.ts)$/.test(file));
  assert.deepEqual(others.sort(), ["LICENSE", "README.md", "package.json"]);
  assert.ok(files.includes("dist/index.js"));
  assert.ok(files.includes("dist/index.d.ts"));
});

test("the package works where it is installed, with its types", () => {
  const consumer = join(folder, "consumer");
  mkdirSync(join(consumer, "node_modules/@mneme/client"), { recursive: true });
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz")) as string;
  const unpack = ["xzf", join(folder, tarball), "--strip-components=1", "-C"];
  execFileSync("tar", [...unpack, join(consumer, "node_modules/@mneme/client")]);
  for (const dependency of ["@bufbuild", "@connectrpc", "@types", "undici-types"]) {
    symlinkSync(
      join(PACKAGE, "node_modules", dependency),
      join(consumer, "node_modules", dependency),
    );
  }
  writeFileSync(join(consumer, "package.json"), '{ "type": "module" }');
  writeFileSync(
    join(consumer, "main.ts"),
    `import { createMneme, MnemeError, type RecallRequestInit } from "@mneme/client";
const request: RecallRequestInit = { query: "x", scopes: ["event", "lesson"] };
const client = createMneme({ retries: 0, address: "127.0.0.1:9" });
const answer = await client.recall(request).catch((error: MnemeError) => error);
console.log(answer instanceof MnemeError ? answer.code : answer.results[0]?.score.toFixed());
// @ts-expect-error: a query is required.
const empty: RecallRequestInit = {};
// @ts-expect-error: there is no such kind of memory.
const unknown: RecallRequestInit = { query: "x", scopes: ["evnt"] };
// @ts-expect-error: a limit is a number.
const text: RecallRequestInit = { query: "x", limit: "3" };
void [empty, unknown, text];
`,
  );
  const strict = ["--strict", "--target", "es2023", "--module", "nodenext", "--skipLibCheck"];
  const tsc = join(PACKAGE, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, ...strict, "--types", "node", "main.ts"], {
    cwd: consumer,
    stdio: "pipe",
  });
  const printed = execFileSync(process.execPath, ["main.js"], { cwd: consumer, encoding: "utf8" });
  assert.equal(printed.trim(), "UNAVAILABLE");
});

test("the lock file names no registry", () => {
  assert.doesNotMatch(readFileSync(join(PACKAGE, "package-lock.json"), "utf8"), /"resolved"/);
});
