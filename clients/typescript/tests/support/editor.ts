import { spawn } from "node:child_process";
import { join } from "node:path";
import { PACKAGE } from "./paths.js";

const TSC = join(PACKAGE, "node_modules/typescript/bin/tsc");

/** The language service behind its protocol. */
export class Editor {
  readonly #process = spawn(process.execPath, [TSC, "--lsp", "--stdio"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  readonly #asked = new Map<number, (result: unknown) => void>();
  #received = Buffer.alloc(0);

  /** One that has a program open. */
  static async start(uri: string, text: string): Promise<Editor> {
    const editor = new Editor();
    editor.#process.stdout.on("data", (part: Buffer) => editor.#receive(part));
    await editor.ask("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
    editor.#send({ method: "initialized", params: {} });
    const textDocument = { uri, languageId: "typescript", version: 1, text };
    editor.#send({ method: "textDocument/didOpen", params: { textDocument } });
    return editor;
  }

  /** The answer to a request of the protocol. */
  ask(method: string, params: object): Promise<unknown> {
    const id = this.#asked.size + 1;
    this.#send({ id, method, params });
    return new Promise((resolve) => this.#asked.set(id, resolve));
  }

  /** Ends it. */
  close(): void {
    this.#process.kill();
  }

  #send(message: object): void {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.#process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.#process.stdin.write(body);
  }

  #receive(part: Buffer): void {
    this.#received = Buffer.concat([this.#received, part]);
    for (;;) {
      const head = /^Content-Length: (\d+)\r\n(?:.+\r\n)*\r\n/.exec(
        this.#received.toString("latin1"),
      );
      const end = head ? head[0].length + Number(head[1]) : Number.POSITIVE_INFINITY;
      if (head === null || this.#received.length < end) {
        return;
      }
      const message = JSON.parse(this.#received.subarray(head[0].length, end).toString());
      this.#received = this.#received.subarray(end);
      if (message.method === undefined) {
        this.#asked.get(message.id)?.(message.result);
      } else if (message.id !== undefined) {
        this.#send({ id: message.id, result: null });
      }
    }
  }
}
