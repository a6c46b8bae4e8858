/** Operations on a real server: started, waited for, failed. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BackupResponseSchema, type Mneme, MnemeError, RestoreResponseSchema } from "@mneme/client";
import { Server } from "./support/server.js";

let server: Server;
let admin: Mneme;

before(async () => {
  server = await Server.start();
  admin = server.admin();
});
after(() => server?.stop());

test("an operation is waited for and comes to its result", async () => {
  const { operation } = await admin.startBackup({ operationId: "first" });
  assert.equal(operation?.kind, "backup");
  const seen: string[] = [];
  const backup = await admin.resultOf("first", BackupResponseSchema, {
    timeoutMs: 60_000,
    onUpdate: (one) => seen.push(one.id),
  });
  assert.match(backup.path, /\.db$/);
  assert.equal(seen.at(-1), "first");
  await assert.rejects(admin.resultOf("first", RestoreResponseSchema), TypeError);
});

test("one that failed throws its error, and one that there is not is not found", async () => {
  const { operation } = await admin.startBackup();
  assert.ok(operation);
  const made = await admin.resultOf(operation, BackupResponseSchema);
  const { writeFile } = await import("node:fs/promises");
  await writeFile(made.path, "no database any more");
  const backup = made.path.slice(made.path.lastIndexOf("/") + 1);
  const restore = await admin.startRestore({ backup, operationId: "broken" });
  await assert.rejects(
    admin.resultOf(restore.operation ?? "", RestoreResponseSchema),
    (error) => error instanceof MnemeError && error.code === "DATA_LOSS",
  );
  await assert.rejects(
    admin.resultOf("nope", BackupResponseSchema),
    (error) => error instanceof MnemeError && error.code === "NOT_FOUND",
  );
});
