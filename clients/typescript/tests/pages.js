/** Writes the TypeScript blocks of the documentation to build/pages, to be checked and run. */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "..");
const REPOSITORY = join(PACKAGE, "../..");
const OUT = join(PACKAGE, "build/pages");

const documents = readdirSync(join(REPOSITORY, "docs"), { recursive: true })
  .filter((name) => name.endsWith(".md"))
  .map((name) => join(REPOSITORY, "docs", name));

rmSync(join(PACKAGE, "build"), { recursive: true, force: true });
for (const page of [join(REPOSITORY, "README.md"), join(PACKAGE, "README.md"), ...documents]) {
  const text = readFileSync(page, "utf8");
  const folder = join(OUT, relative(REPOSITORY, page).replaceAll(/[\\/]/g, "-").slice(0, -3));
  for (const block of text.matchAll(/^```ts\n(.*?)^```$/gms)) {
    const line = String(text.slice(0, block.index).split("\n").length).padStart(5, "0");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `line-${line}.ts`), `${block[1]}\nexport {};\n`);
  }
}
