/** What an editor shows of a call: the language service is asked as an editor asks it. */

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { API, type Checker, type Project, SignatureKind } from "typescript/unstable/sync";
import { Editor } from "./support/editor.js";
import { PACKAGE } from "./support/paths.js";

// Within the package, so that its name leads to what is published.
const FOLDER = join(PACKAGE, "build/hover");
const PROGRAM = join(FOLDER, "main.ts");
const URI = pathToFileURL(PROGRAM).href;
const SOURCE = `import { createMneme } from "@mneme/client";
const mneme = createMneme();
await mneme.recall({ query: "the build", scopes: ["event"] });
await mneme.recordEvents({ events: [{ sessionId: "s1", eventType: "message", text: "done" }] });
await mneme.updateLesson({ lesson: { id: "tags", importance: "high" } });
`;

let api: API;
let project: Project;
let checker: Checker;
let editor: Editor;

before(async () => {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(PROGRAM, SOURCE);
  const compilerOptions = { target: "es2023", module: "nodenext", strict: true, types: ["node"] };
  const tsconfig = join(FOLDER, "tsconfig.json");
  writeFileSync(tsconfig, JSON.stringify({ compilerOptions, files: ["main.ts"] }));
  api = new API({ cwd: FOLDER });
  project = api.updateSnapshot({ openProjects: [tsconfig] }).getProjects()[0] as Project;
  checker = project.checker;
  editor = await Editor.start(URI, SOURCE);
});
after(() => {
  api.close();
  editor.close();
});

/** What an editor shows at the first place where a name stands. */
async function hover(name: string): Promise<string> {
  const before = SOURCE.slice(0, SOURCE.search(new RegExp(`\\b${name}\\b`))).split("\n");
  const position = { line: before.length - 1, character: before.at(-1)?.length ?? 0 };
  const shown = await editor.ask("textDocument/hover", { textDocument: { uri: URI }, position });
  return JSON.stringify(shown);
}

test("the program has no errors", () => {
  assert.deepEqual(project.program.getSemanticDiagnostics(PROGRAM), []);
});

test("a method shows what its RPC does, and what it fails with", async () => {
  const shown = await hover("recall");
  assert.match(shown, /recall\(request: RecallRequestInit, options\?: CallOptions\)/);
  assert.match(shown, /Recalls what bears on a query, best first/);
  assert.match(shown, /Errors: INVALID_ARGUMENT/);
});

test("a field of a request shows its comment and its limits", async () => {
  assert.match(await hover("query"), /The question, or what the agent is about to do/);
  assert.match(await hover("query"), /Required; up to 8,192 characters/);
  assert.match(await hover("scopes"), /Where to look, by kinds of memory/);
});

test("so does a field of a message inside of one, and of what an update changes", async () => {
  assert.match(await hover("eventType"), /Known: session_started, session_ended/);
  assert.match(await hover("importance"), /How much it matters/);
});

test("every method takes a named request, whose fields are all documented", () => {
  const client = checker.getTypeAtPosition(PROGRAM, SOURCE.indexOf("mneme ="));
  assert.ok(client);
  const named = new Map<string, readonly string[]>();
  for (const method of checker.getPropertiesOfType(client)) {
    const type = checker.getTypeOfSymbol(method);
    const [signature] = type ? checker.getSignaturesOfType(type, SignatureKind.Call) : [];
    const request = signature && /^(request|items)$/.test(signature.getParameters()[0]?.name ?? "");
    const taken = request && checker.getParameterType(signature, 0);
    const given = taken && (checker.getNonNullableType(taken) ?? taken);
    if (given) {
      const name = checker.typeToString(given);
      const bare = checker.getPropertiesOfType(given).filter((one) => {
        return name.endsWith("Init") && one.getDocumentationComment(checker) === "";
      });
      named.set(
        `${method.name}: ${name}`,
        bare.map((one) => one.name),
      );
    }
    assert.notEqual(method.getDocumentationComment(checker), "", method.name);
  }
  assert.ok(named.size > 100, `${named.size} methods`);
  for (const [method, bare] of named) {
    assert.match(method, /: (Items<)?\w+Init( \| \w+)?>?$/);
    assert.deepEqual(bare, [], method);
  }
});
