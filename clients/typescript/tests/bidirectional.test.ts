/** Streams in both directions at once, on the server's own reflection service. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { create, createFileRegistry } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { createMneme } from "@mneme/client";
import { failure } from "./support/failing.js";
import { PACKAGE } from "./support/paths.js";
import { Server } from "./support/server.js";

const { Caller } = await import(pathToFileURL(join(PACKAGE, "dist/caller.js")).href);

/** What is needed of grpc/reflection/v1/reflection.proto. */
const reflection = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "reflection.proto",
    package: "grpc.reflection.v1alpha",
    syntax: "proto3",
    messageType: [
      {
        name: "ServerReflectionRequest",
        field: [
          {
            name: "list_services",
            jsonName: "listServices",
            number: 7,
            type: FieldDescriptorProto_Type.STRING,
          },
        ],
      },
      {
        name: "ServerReflectionResponse",
        field: [
          {
            name: "original_request",
            jsonName: "originalRequest",
            number: 2,
            type: FieldDescriptorProto_Type.MESSAGE,
            typeName: ".grpc.reflection.v1alpha.ServerReflectionRequest",
          },
        ],
      },
    ],
    service: [
      {
        name: "ServerReflection",
        method: [
          {
            name: "ServerReflectionInfo",
            inputType: ".grpc.reflection.v1alpha.ServerReflectionRequest",
            outputType: ".grpc.reflection.v1alpha.ServerReflectionResponse",
            clientStreaming: true,
            serverStreaming: true,
          },
        ],
      },
    ],
  }),
  () => undefined,
);
const service = reflection.getService("grpc.reflection.v1alpha.ServerReflection");
const call = {
  method: service?.method["serverReflectionInfo"],
  repeatable: false,
  required: [],
  madeIds: [],
};

let server: Server;
before(async () => {
  server = await Server.start();
});
after(() => server?.stop());

// biome-ignore lint/suspicious/noExplicitAny: the caller is not part of the package's interface
function callerOf(address: string): any {
  const { transport } = createMneme({ address });
  return new Caller({ address, transport, close: () => undefined }, 3, null);
}

test("requests and answers take turns", async () => {
  const answers: string[] = [];
  let proceed: () => void = () => undefined;
  async function* requests() {
    for (const listServices of ["one", "two", "three"]) {
      yield { listServices };
      await new Promise<void>((done) => {
        proceed = done;
      });
    }
  }
  for await (const answer of callerOf(server.address).bidirectional(call, requests(), {})) {
    answers.push(answer.originalRequest.listServices);
    proceed();
  }
  assert.deepEqual(answers, ["one", "two", "three"]);
});

test("a stream in both directions ends when its loop is left", async () => {
  let ended = false;
  async function* requests() {
    try {
      for (;;) {
        yield { listServices: "again" };
        await new Promise((done) => setTimeout(done, 5));
      }
    } finally {
      ended = true;
    }
  }
  for await (const answer of callerOf(server.address).bidirectional(call, requests(), {})) {
    assert.equal(answer.originalRequest.listServices, "again");
    break;
  }
  while (!ended) {
    await new Promise((done) => setTimeout(done, 5));
  }
});

test("an error of the requests comes back as it is, and a lost server as UNAVAILABLE", async () => {
  const own = new Error("no more");
  function* requests() {
    yield { listServices: "one" };
    throw own;
  }
  const stream = callerOf(server.address).bidirectional(call, requests(), {});
  await assert.rejects(
    async () => {
      for (;;) {
        await stream.next();
      }
    },
    (error) => error === own,
  );
  const lost = callerOf("127.0.0.1:9").bidirectional(call, [{ listServices: "one" }], {});
  assert.equal((await failure(lost.next())).code, "UNAVAILABLE");
});
