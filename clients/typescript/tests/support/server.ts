import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import {
  type CreateApiKeyRequestInit,
  createMneme,
  type Mneme,
  type MnemeOptions,
} from "@mneme/client";
import { createMneme as createOverHttp } from "@mneme/client/http";
import { REPOSITORY } from "./paths.js";

export const ADMIN_KEY = "mn_the-key-of-the-tests-administrator";

/** The command of the server: MNEME_TEST_SERVER, else that of `make setup`. */
export const SERVER =
  process.env["MNEME_TEST_SERVER"] ?? join(REPOSITORY, ".venv/bin/mneme-server");

/** Where the prepared embedding model lies. */
export const MODELS = process.env["MNEME_MODEL_DIR"] ?? join(REPOSITORY, "model/mneme_minilm");

/** A real server in a process and a folder of its own; port 0 on loopback. */
export class Server {
  readonly folder: string;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #clients: Mneme[] = [];
  #process: ChildProcess | undefined;
  #overHttp = false;
  #log = "";
  #made = 0;
  address = "";
  /** Where it serves HTTP, as a URL; empty where it does not. */
  httpAddress = "";

  private constructor(folder: string, settings: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.#settings = settings;
  }

  /** Starts one; settings are MNEME_… variables without the prefix. */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<Server> {
    const server = new Server(await mkdtemp(join(tmpdir(), "mneme-ts-")), settings);
    await server.restart();
    return server;
  }

  /** Starts one whose clients speak HTTP. */
  static async startOverHttp(settings: Readonly<Record<string, string>> = {}): Promise<Server> {
    const server = await Server.start({ ...settings, MNEME_HTTP_LISTEN: "127.0.0.1:0" });
    server.#overHttp = true;
    return server;
  }

  /** What it has logged so far. */
  get log(): string {
    return this.#log;
  }

  /** Starts the process again, on the same data and the same address. */
  async restart(): Promise<void> {
    if (!existsSync(SERVER)) {
      throw new Error(`${SERVER} is missing: run make setup, or set MNEME_TEST_SERVER`);
    }
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("MNEME_"));
    this.#process = spawn(SERVER, ["serve"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...Object.fromEntries(kept),
        MNEME_LISTEN: this.address || "127.0.0.1:0",
        MNEME_HTTP_LISTEN: "",
        MNEME_METRICS_LISTEN: "",
        MNEME_DATA_DIR: join(this.folder, "data"),
        MNEME_MODEL_DIR: MODELS,
        MNEME_ADMIN_KEY: ADMIN_KEY,
        MNEME_LOG_LEVEL: "warning",
        MNEME_DRAIN_SECONDS: "2",
        ...this.#settings,
        ...(this.httpAddress && { MNEME_HTTP_LISTEN: new URL(this.httpAddress).host }),
      },
    });
    this.#process.stderr?.on("data", (data) => {
      this.#log += data;
    });
    for await (const line of createInterface({ input: this.#process.stdout as never })) {
      if (line.startsWith("serving HTTP on ")) {
        this.httpAddress = line.slice("serving HTTP on ".length).trim();
      }
      if (line.startsWith("serving on ")) {
        this.address = line.slice("serving on ".length).trim();
        return;
      }
    }
    throw new Error(`the server ended instead of serving:\n${this.#log}`);
  }

  /** A client with these options, closed when the server stops. */
  client(options: MnemeOptions = {}): Mneme {
    const client = this.#overHttp
      ? createOverHttp({ url: this.httpAddress, ...options })
      : createMneme({ address: this.address, ...options });
    this.#clients.push(client);
    return client;
  }

  /** A client with the administrator's key. */
  admin(options: MnemeOptions = {}): Mneme {
    return this.client({ apiKey: ADMIN_KEY, ...options });
  }

  /** The secret of a new key of a new tenant. */
  async newKey(key: Partial<CreateApiKeyRequestInit> = {}): Promise<string> {
    this.#made += 1;
    const admin = this.admin();
    const tenantId = `tenant-${this.#made}`;
    await admin.createTenant({ tenantId });
    const scopes = ["read", "write"] as const;
    return (await admin.createApiKey({ tenantId, name: "test", scopes, ...key })).secret;
  }

  /** A client of a new tenant, which reads and writes. */
  async tenant(options: MnemeOptions = {}): Promise<Mneme> {
    return this.client({ apiKey: await this.newKey(), ...options });
  }

  /** Ends the process as a crash does. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Stops the server and removes its folder. */
  async stop(): Promise<void> {
    for (const client of this.#clients) {
      client.close();
    }
    await this.#end("SIGTERM");
    await rm(this.folder, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (running && running.exitCode === null && running.signalCode === null) {
      running.kill(signal);
      await once(running, "exit");
    }
  }
}
