import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const server = process.env["MNEME_HTTP"] ?? "http://127.0.0.1:8080";
const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export default defineConfig({
  resolve: {
    // The generated types, and where a page needs them the client's own functions.
    alias: [
      { find: "@mneme/verifier", replacement: path("../clients/typescript/src/proof.ts") },
      { find: "node:crypto", replacement: path("src/pages/proof/crypto.ts") },
      { find: /^@mneme\/client\/(.*)$/, replacement: path("../clients/typescript/src/$1.ts") },
    ],
  },
  build: {
    outDir: path("../server/mneme_server/edge/http/dashboard"),
    emptyOutDir: true,
    target: "es2022",
    // The Content-Security-Policy takes nothing inline, data: addresses neither.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: {
    // `npm run dev` asks a server that runs: MNEME_HTTP=http://127.0.0.1:8080.
    proxy: {
      "^/(api/|mneme\\.v1\\.)": { target: server, changeOrigin: true, headers: { origin: server } },
    },
  },
  test: {
    environment: "happy-dom",
    include: ["tests/**/*.test.{ts,tsx}"],
    setupFiles: ["tests/setup.ts"],
    restoreMocks: true,
    testTimeout: 60_000,
  },
});
