/** Addresses, keys and TLS: what is used, what is refused before anything is sent. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { ConfigurationError, createMneme, RecallService } from "@mneme/client";
import { createMneme as createOverHttp } from "@mneme/client/http";
import { failure } from "./support/failing.js";
import { ADMIN_KEY, Server } from "./support/server.js";

let folder: string;
let server: Server;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "mneme-ts-"));
  server = await Server.start();
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs the block with these variables set. */
async function withEnvironment(
  variables: Record<string, string>,
  block: () => Promise<void> | void,
): Promise<void> {
  const before = { ...process.env };
  Object.assign(process.env, variables);
  try {
    await block();
  } finally {
    process.env = before;
  }
}

test("address and key come from the environment", async () => {
  const variables = { MNEME_ADDRESS: server.address, MNEME_API_KEY: ADMIN_KEY };
  await withEnvironment(variables, async () => {
    const client = createMneme();
    assert.equal(client.address, server.address);
    assert.ok((await client.getStats()).server?.version);
    client.close();
  });
});

test("what is given wins over the environment", async () => {
  const variables = { MNEME_ADDRESS: "nowhere.invalid", MNEME_API_KEY: "mn_wrong" };
  await withEnvironment(variables, async () => {
    assert.ok(await server.client({ apiKey: ADMIN_KEY }).getStats());
  });
});

test("without either it is the default address", () => {
  assert.equal(createMneme().address, "127.0.0.1:50051");
});

test("the tenant that is given is sent for balancers, over gRPC and HTTP", async () => {
  const heard: (string | undefined)[] = [];
  const listening = createServer((request, response) => {
    heard.push(request.headers["x-mneme-tenant"] as string | undefined);
    response.writeHead(503).end();
  });
  await once(listening.listen(0, "127.0.0.1"), "listening");
  const over = createHttp2Server((request, response) => {
    heard.push(request.headers["x-mneme-tenant"] as string | undefined);
    response.writeHead(503).end();
  });
  await once(over.listen(0, "127.0.0.1"), "listening");
  const [http, grpc] = [listening, over].map((one) => (one.address() as AddressInfo).port);
  const place = { address: `127.0.0.1:${grpc}`, retries: 0 };
  await withEnvironment({ MNEME_TENANT: " of-the-environment\n" }, async () => {
    for (const mneme of [
      createMneme(place),
      createMneme({ ...place, tenant: "acme" }),
      createMneme({ ...place, tenant: "" }),
      createOverHttp({ url: `http://127.0.0.1:${http}`, retries: 0, tenant: "acme" }),
    ]) {
      await assert.rejects(mneme.getStats());
      mneme.close();
    }
  });
  assert.deepEqual(heard, ["of-the-environment", "acme", undefined, "acme"]);
  listening.close();
  over.close();
});

test("addresses are read as people write them", () => {
  const addresses: [string, string][] = [
    ["memory.example", "memory.example:50051"],
    ["memory.example:443", "memory.example:443"],
    ["grpc://memory.example", "memory.example:50051"],
    ["grpcs://memory.example", "memory.example:443"],
    ["https://memory.example/", "memory.example:443"],
    ["::1", "[::1]:50051"],
    ["[::1]:7000", "[::1]:7000"],
    ["unix:/run/mneme.sock", "unix:/run/mneme.sock"],
  ];
  for (const [given, address] of addresses) {
    assert.equal(createMneme({ address: given }).address, address);
  }
});

test("what is no address is refused", () => {
  for (const address of ["ftp://x", "a b", "host:port", "host:0", "host:70000", "a/b", "unix:"]) {
    assert.throws(() => createMneme({ address }), ConfigurationError, address);
  }
});

test("a key goes in the clear to this machine only, unless the network is trusted", async () => {
  const apiKey = "mn_secret";
  for (const address of [
    "127.0.0.1",
    "127.9.9.9:1",
    "::1",
    "localhost",
    "a.localhost",
    "unix:/s",
  ]) {
    createMneme({ address, apiKey });
  }
  for (const address of [
    "10.0.0.7",
    "memory.example",
    "::2",
    "localhost.example",
    "127.0.0.1.nip.io",
  ]) {
    assert.throws(() => createMneme({ address, apiKey }), /in the clear/, address);
    createMneme({ address, apiKey, insecure: true });
    createMneme({ address, apiKey, tls: true });
    createMneme({
      address: `grpcs://${address.includes("::") ? `[${address}]` : address}`,
      apiKey,
    });
    createMneme({ address });
    for (const yes of ["1", " True\n"]) {
      await withEnvironment({ MNEME_INSECURE: yes }, () => {
        createMneme({ address, apiKey });
      });
    }
    await withEnvironment({ MNEME_TLS: "1" }, () => {
      createMneme({ address, apiKey });
    });
  }
});

test("settings that make no sense are refused with what to change", () => {
  const wrong: [object, RegExp][] = [
    [{ apiKey: "mn_ü" }, /copy it again/],
    [{ apiKey: "two words" }, /copy it again/],
    [{ tenant: "two words" }, /no tenant's id/],
    [{ retries: -1 }, /retries/],
    [{ timeoutMs: 0 }, /timeoutMs/],
    [{ tls: "/nowhere/ca.pem" }, /cannot read \/nowhere\/ca\.pem/],
    [{ tls: { certificate: "a.pem" } }, /both a certificate and its key/],
    [{ address: "unix:/s", tls: true }, /unix socket/],
  ];
  for (const [options, message] of wrong) {
    assert.throws(
      () => createMneme(options),
      (error: Error) => error instanceof ConfigurationError && message.test(error.message),
    );
  }
});

test("a unix socket serves as well", async () => {
  const local = await Server.start({ MNEME_LISTEN: `unix:${join(folder, "mneme.sock")}` });
  try {
    assert.match(local.address, /^unix:/);
    assert.ok((await local.admin().getStats()).server?.version);
  } finally {
    await local.stop();
  }
});

test("Connect's own clients use the same connection and key", async () => {
  const recall = createClient(RecallService, server.admin().transport);
  assert.equal((await recall.recall({ query: "anything" })).results.length, 0);
});

test("a process ends by itself although its client was not closed", () => {
  const script = `
    import { createMneme } from "@mneme/client";
    await createMneme().getStats();
    console.log("done");
  `;
  const printed = execFileSync(process.execPath, ["--input-type=module", "--eval", script], {
    env: { ...process.env, MNEME_ADDRESS: server.address, MNEME_API_KEY: ADMIN_KEY },
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.equal(printed.trim(), "done");
});

test("TLS checks the server's certificate", async (context) => {
  const [ca, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  try {
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const fresh = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    execFileSync("openssl", [...fresh, ...subject, "-keyout", key, "-out", ca], { stdio: "pipe" });
  } catch (error) {
    context.skip(`openssl cannot make a certificate here: ${error}`);
    return;
  }
  assert.ok(existsSync(ca));
  const safe = await Server.start({ MNEME_TLS_CERT: ca, MNEME_TLS_KEY: key });
  try {
    const { port } = new URL(`http://${safe.address}`);
    const address = `localhost:${port}`;
    assert.ok(await safe.admin({ address, tls: ca }).getStats());
    const named = { ca, serverName: "localhost" };
    assert.ok(await safe.admin({ tls: named }).getStats());
    const stranger = await failure(safe.admin({ address, tls: true, retries: 0 }).getStats());
    assert.equal(stranger.code, "UNAVAILABLE");
    assert.match(stranger.message, /certificate/);
    const plain = await failure(safe.admin({ address, retries: 0 }).getStats());
    assert.equal(plain.code, "UNAVAILABLE");
  } finally {
    await safe.stop();
  }
});
