/** Operations on a real server: started, waited for, failed. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BackupResultSchema, type Mneme, MnemeError, RestoreResultSchema } from "@mneme/client";
import { Server } from "./support/server.js";

let server: Server;
let admin: Mneme;

before(async () => {
  server = await Server.start();
  admin = server.admin();
});
after(() => server?.stop());

test("an operation is waited for and comes to its result", async () => {
  const { operation } = await admin.backup({ operationId: "first" });
  assert.equal(operation?.kind, "backup");
  const seen: string[] = [];
  const backup = await admin.resultOf("first", BackupResultSchema, {
    timeoutMs: 60_000,
    onUpdate: (one) => seen.push(one.id),
  });
  assert.match(backup.path, /\.db$/);
  assert.equal(seen.at(-1), "first");
  await assert.rejects(admin.resultOf("first", RestoreResultSchema), TypeError);
});

test("one that failed throws its error, and one that there is not is not found", async () => {
  const made = await admin.resultOf(await admin.backup(), BackupResultSchema);
  const { writeFile } = await import("node:fs/promises");
  await writeFile(made.path, "no database any more");
  const backup = made.path.slice(made.path.lastIndexOf("/") + 1);
  const restore = await admin.restore({ backup, operationId: "broken" });
  await assert.rejects(
    admin.resultOf(restore, RestoreResultSchema),
    (error) => error instanceof MnemeError && error.code === "DATA_LOSS",
  );
  const ended = await admin.getOperation({ operationId: "broken" });
  await assert.rejects(admin.resultOf(ended, RestoreResultSchema), { code: "DATA_LOSS" });
  await assert.rejects(
    admin.resultOf("nope", BackupResultSchema),
    (error) => error instanceof MnemeError && error.code === "NOT_FOUND",
  );
});
