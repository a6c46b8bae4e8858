import { setTimeout as sleep } from "node:timers/promises";
import type { Transport } from "@connectrpc/connect";
import { cancelled } from "./attempts.js";
import type { Connection } from "./caller.js";
import type { ConnectionOptions } from "./connection.js";
import { ConfigurationError, MnemeError } from "./errors.js";
import { Freshness } from "./freshness.js";
import { LocalFolder } from "./local-server.js";
import { Participation } from "./participation.js";

const START_MS = 60_000;
const JOIN_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

interface FolderOptions extends ConnectionOptions {
  readonly local: string;
  readonly serverCommand?: string | readonly string[] | undefined;
}

/**
 * The connection to whichever server a folder has now. It is joined, or started, when a call finds
 * that there is none.
 *
 * @throws ConfigurationError: the options cannot be used together.
 */
export function folderConnectionOf(options: FolderOptions): Connection {
  const { local, address, apiKey, tls, insecure } = options;
  if (!local) {
    throw new ConfigurationError("local is empty: give a folder");
  }
  if ([address, apiKey, tls, insecure].some((one) => one !== undefined)) {
    throw new ConfigurationError(
      "local goes without address, apiKey, tls and insecure: its server has its own",
    );
  }
  const freshness = new Freshness(options.readOwnWrites ?? true);
  return new FolderConnection(new LocalFolder(local, options.serverCommand), freshness);
}

class FolderConnection implements Connection {
  readonly transport: Transport;
  readonly freshness: Freshness;
  readonly #folder: LocalFolder;
  #joined: Participation | undefined;
  #former: Participation | undefined;
  #joining: Promise<Participation> | undefined;
  #closed = false;

  constructor(folder: LocalFolder, freshness: Freshness) {
    this.#folder = folder;
    this.freshness = freshness;
    this.transport = this.#transportOf((joined) => joined.connection);
  }

  /** A transport on connections to the server that was joined. */
  #transportOf(connectionTo: (joined: Participation) => Connection): Transport {
    return {
      unary: async (method, signal, timeoutMs, ...others) => {
        const { joined, left } = await this.#within(signal, timeoutMs);
        return connectionTo(joined).transport.unary(method, signal, left, ...others);
      },
      stream: async (method, signal, timeoutMs, ...others) => {
        const { joined, left } = await this.#within(signal, timeoutMs);
        return connectionTo(joined).transport.stream(method, signal, left, ...others);
      },
    };
  }

  /** Another connection to whichever server this one has joined; it takes no part of its own. */
  apart(): Connection {
    let closed = false;
    let own: { readonly to: Participation; readonly connection: Connection } | undefined;
    const connectionTo = (joined: Participation) => {
      if (closed) {
        throw new MnemeError("the stream is closed", { code: "CANCELLED" });
      }
      if (own?.to !== joined) {
        own?.connection.close();
        own = { to: joined, connection: joined.connection.apart() };
      }
      return own.connection;
    };
    return {
      address: this.address,
      freshness: this.freshness,
      transport: this.#transportOf(connectionTo),
      apart: () => this.apart(),
      close: () => {
        closed = true;
        own?.connection.close();
      },
    };
  }

  get address(): string {
    return this.#joined?.connection.address ?? this.#folder.path;
  }

  close(): void {
    this.#closed = true;
    this.#former?.close();
    this.#joined?.close();
  }

  /** The joined server, and what is left of a call's time. */
  async #within(
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
  ): Promise<{ joined: Participation; left: number | undefined }> {
    const begun = performance.now();
    const joined = this.#present ?? (await this.#join(signal, timeoutMs));
    const left = timeoutMs && Math.max(1, Math.ceil(timeoutMs - (performance.now() - begun)));
    return { joined, left };
  }

  get #present(): Participation | undefined {
    return this.#joined?.isGone ? undefined : this.#joined;
  }

  /** Waits for a server as long as this call can; the start goes on for others. */
  async #join(
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
  ): Promise<Participation> {
    if (this.#joining === undefined) {
      this.#joining = this.#joinAny().finally(() => {
        this.#joining = undefined;
      });
      // Who waits gets the error; it is nobody's when all have given up.
      this.#joining.catch(() => undefined);
    }
    if (timeoutMs === undefined && signal === undefined) {
      return this.#joining;
    }
    const over = new AbortController();
    const ends = [over.signal, ...(signal ? [signal] : [])];
    const limit = Math.min(timeoutMs ?? START_MS, START_MS);
    const late = sleep(limit, undefined, { signal: AbortSignal.any(ends) }).then(
      () => {
        throw this.#folder.silent(limit);
      },
      () => {
        throw cancelled(signal);
      },
    );
    try {
      return await Promise.race([this.#joining, late]);
    } finally {
      over.abort();
      late.catch(() => undefined);
    }
  }

  async #joinAny(): Promise<Participation> {
    const end = performance.now() + START_MS;
    const left = () => {
      const ms = end - performance.now();
      if (ms <= 0) {
        throw this.#folder.silent(START_MS);
      }
      return ms;
    };
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      const record = this.#folder.record();
      const joined =
        record && (await Participation.join(record, Math.min(JOIN_MS, left()), this.freshness));
      if (joined) {
        return this.#take(joined);
      }
      await this.#folder.start(left());
      if (record && record.certificate === this.#folder.record()?.certificate) {
        await sleep(pause);
      }
    }
  }

  #take(joined: Participation): Participation {
    if (this.#closed) {
      joined.close();
      throw new MnemeError("the client is closed", { code: "CANCELLED" });
    }
    // Not the one that was just lost: its calls are about to hear that it was.
    this.#former?.close();
    this.#former = this.#joined;
    this.#joined = joined;
    return joined;
  }
}
