/** What the documentation and the examples show works, in their order, against a real server. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PACKAGE } from "./support/paths.js";
import { MODELS, SERVER, Server } from "./support/server.js";

const OUT = join(PACKAGE, "build/out");
const PAGES = join(OUT, "build/pages");

let server: Server;

before(async () => {
  server = await Server.start();
});

after(() => server.stop());

for (const page of readdirSync(PAGES).sort()) {
  test(`the blocks of ${page} run`, () => runsAll(join(PAGES, page)));
}

test("the examples run", () => runsAll(join(OUT, "examples")));

/** Runs the modules of a folder one after the other, in a tenant of their own. */
async function runsAll(folder: string): Promise<void> {
  const apiKey = await server.newKey({ scopes: ["read", "write", "learn", "admin"] });
  const modules = readdirSync(folder).filter((name) => name.endsWith(".js"));
  assert.ok(modules.length > 0);
  for (const name of modules.sort()) {
    const done = spawnSync(process.execPath, [join(folder, name)], {
      cwd: server.folder,
      env: {
        ...process.env,
        MNEME_ADDRESS: server.address,
        MNEME_API_KEY: apiKey,
        MNEME_SERVER: SERVER,
        MNEME_MODEL_DIR: MODELS,
        MNEME_LINGER_SECONDS: "1",
      },
      encoding: "utf8",
      timeout: 60_000,
    });
    assert.equal(done.status, 0, `${name} failed\n${done.stdout}${done.stderr}`);
    assert.equal(done.stderr, "", `${name} printed to stderr`);
    assert.ok(done.stdout.trim(), `${name} shows nothing`);
  }
}
