import { spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { MnemeError } from "./errors.js";
import { VERSION } from "./version.js";

const RECORD = "local.json";
const LOG = "server.log";
const WRITABLE_BY_OTHERS = 0o022;
const FORMAT = 1;
const API = "mneme.v1";
const COMMAND = "mneme-server";
/** The exit code of a start whose server was killed, or the like; another may succeed. */
const DIED = 75;
const STARTS = 3;

/** What a folder's server, or the last one, said of itself. */
export interface Record {
  readonly state: string;
  readonly address: string;
  readonly certificate: string;
  readonly key: string;
  readonly version: string;
  readonly format: number;
  readonly api: readonly string[];
}

/** Whether nobody else could have written it: whoever did would be told memories. */
function isOwn(path: string): boolean {
  const { uid, mode } = statSync(path);
  const own = process.getuid?.();
  return own === undefined || ((uid === own || uid === 0) && (mode & WRITABLE_BY_OTHERS) === 0);
}

/**
 * A folder with a server of its own: what its record says, and how the server is started. Who
 * serves is decided by the server's lock, so that any number of participants may try at once.
 */
export class LocalFolder {
  readonly path: string;
  readonly #command: readonly string[];
  readonly #isGiven: boolean;

  constructor(folder: string, command: string | readonly string[] | undefined) {
    this.path = resolve(folder.replace(/^~(?=\/|$)/, homedir()));
    const given = command ?? (process.env["MNEME_SERVER"]?.trim() || undefined);
    this.#isGiven = given !== undefined;
    this.#command = typeof given === "object" ? given : [given ?? COMMAND];
  }

  /**
   * The record of a server that serves, or did when it died; undefined without one.
   *
   * @throws MnemeError: a server of another version wrote it, which cannot be joined.
   */
  record(): Record | undefined {
    let record: Record;
    try {
      if (!isOwn(this.path) || !isOwn(join(this.path, RECORD))) {
        return undefined;
      }
      record = JSON.parse(readFileSync(join(this.path, RECORD), "utf8")) as Record;
    } catch {
      return undefined; // Whoever starts the server is told what is wrong with the folder.
    }
    if (record?.state !== "serving") {
      return undefined;
    }
    if (record.format !== FORMAT || !record.api?.includes(API)) {
      throw this.#refused(
        `${this.path} is served by Mneme ${record.version}, which this client, Mneme ${VERSION}, ` +
          "cannot join: let its participants end, or use one version for all",
      );
    }
    return record;
  }

  /**
   * Has a server serve the folder; returns when it, or another one, does.
   *
   * @throws MnemeError: it did not start, in its own words, or not in time.
   */
  async start(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    for (let started = 1; ; started += 1) {
      const { code, said } = await this.#run(Math.max(0, end - performance.now()));
      if (code === 0) {
        return;
      }
      if (code !== DIED || started === STARTS) {
        const lines = said.split("\n").filter((line) => line.trim());
        const words = lines.map((line) => line.replace(/^mneme-server: /, "")).join("; ");
        const reason = words || `exit code ${code}; see ${join(this.path, LOG)}`;
        throw this.#refused(`the server of ${this.path} did not start: ${reason}`);
      }
    }
  }

  #run(timeoutMs: number): Promise<{ code: number | null; said: string }> {
    const [command = COMMAND, ...others] = this.#command;
    return new Promise((done, fail) => {
      const child = spawn(command, [...others, "serve", "--local", this.path, "--detach"], {
        stdio: ["ignore", "ignore", "pipe"],
        detached: true, // An interrupt at the terminal is not for it.
      });
      let said = "";
      child.stderr.on("data", (data) => {
        said += data;
      });
      const late = setTimeout(() => {
        // It goes on without us, and what it starts serves the next call.
        child.unref();
        child.stderr.destroy();
        fail(this.silent(timeoutMs));
      }, timeoutMs);
      child.on("error", (error) => {
        clearTimeout(late);
        fail(this.#refused(this.#notStarted(command, error), error));
      });
      child.on("close", (code) => {
        clearTimeout(late);
        done({ code, said });
      });
    });
  }

  /** The error of a server that does not come up in time. */
  silent(timeoutMs: number): MnemeError {
    return new MnemeError(
      `the server of ${this.path} did not answer within ${Math.round(timeoutMs / 1000)} s; ` +
        `${join(this.path, LOG)} may say why`,
      { code: "DEADLINE_EXCEEDED" },
    );
  }

  #notStarted(command: string, error: Error): string {
    if (this.#isGiven || !("code" in error) || error.code !== "ENOENT") {
      return `the server cannot be started: ${command}: ${error.message}`;
    }
    return (
      "the server is not installed here: install it from the wheels that `make dist` builds, " +
      "with the extra `server`, and put mneme-server on the PATH, or say where it is " +
      "(serverCommand or MNEME_SERVER)"
    );
  }

  #refused(words: string, cause?: Error): MnemeError {
    return new MnemeError(words, { code: "FAILED_PRECONDITION", cause });
  }
}
