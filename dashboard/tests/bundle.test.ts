/** What a page loads of the TypeScript client: what it calls, and nothing else. */

import { resolve } from "node:path";
import { build, type Rolldown } from "vite";
import { expect, test } from "vitest";

const CLIENT = resolve(import.meta.dirname, "../../clients/typescript");
const VALIDATION_OR_PROOFS = /buf\/validate|src\/(proof|merkle|notes)\.ts$/;
const UNASKED = /buf\/validate|src\/(choosing|json|merkle|notes|proof|recording|reflecting)\.ts$/;
const ONE_SERVICE = `
import { createMnemeOf, recallMethods } from "${CLIENT}/src/http.ts";
const mneme = createMnemeOf([recallMethods], { url: "http://127.0.0.1:8080" });
console.log((await mneme.recall({ query: "the build" })).results.length);
`;
const ALL_SERVICES = `
import { createMneme } from "${CLIENT}/src/http.ts";
const mneme = createMneme({ url: "http://127.0.0.1:8080" });
console.log((await mneme.recall({ query: "the build" })).results.length);
`;

async function bundled(program: string): Promise<{ bytes: number; modules: string[] }> {
  const entry = `${CLIENT}/main.js`;
  const { output } = (await build({
    configFile: false,
    logLevel: "error",
    root: CLIENT,
    plugins: [
      {
        name: "the program",
        resolveId: (id) => (id === entry ? id : undefined),
        load: (id) => (id === entry ? program : undefined),
      },
    ],
    build: { write: false, target: "es2022", rolldownOptions: { input: entry } },
  })) as Rolldown.RolldownOutput;
  const chunks = output.filter((one) => one.type === "chunk");
  const held = chunks.flatMap((one) => Object.entries(one.modules));
  return {
    bytes: chunks.reduce((sum, one) => sum + one.code.length, 0),
    modules: held.filter(([, module]) => module.renderedLength > 0).map(([name]) => name),
  };
}

test("a page that recalls loads the descriptors of that service alone", async () => {
  const { bytes, modules } = await bundled(ONE_SERVICE);
  const services = modules.filter((name) => /_service_pb|gen\/services\//.test(name));
  expect(services.map((name) => name.replace(/.*\//, "")).sort()).toEqual([
    "recall.ts",
    "recall_service_pb.ts",
  ]);
  expect(modules.filter((name) => UNASKED.test(name))).toEqual([]);
  expect(bytes).toBeLessThan(170_000);
});

test("a page that has all methods loads no rules of validation, and no proofs", async () => {
  const { bytes, modules } = await bundled(ALL_SERVICES);
  expect(modules.filter((name) => VALIDATION_OR_PROOFS.test(name))).toEqual([]);
  expect(bytes).toBeLessThan(320_000);
});
