import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The package's folder; this file runs as build/out/tests/support/paths.js below it. */
export const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "../../../..");

/** The repository. */
export const REPOSITORY = join(PACKAGE, "../..");
