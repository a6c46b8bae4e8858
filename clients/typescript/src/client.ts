import type { Connection } from "./caller.js";
import { type ConnectionOptions, connectionOf } from "./connection.js";
import { folderConnectionOf } from "./folder.js";
import {
  type AnyMethods,
  type Connected,
  type MethodsOf,
  openedOn,
  type Patience,
} from "./methods.js";
import { type Mneme, mnemeOn } from "./mneme.js";

/** Where the server is, and how patient to be with it. */
export interface MnemeOptions extends ConnectionOptions, Patience {
  /**
   * A folder instead of a server: the first process that uses it starts its server, others join
   * it, and it ends a few seconds after the last of them has gone. It goes without `address`,
   * `apiKey`, `tls` and `insecure`.
   */
  readonly local?: string | undefined;
  /**
   * With `local`: the server's command, or the command and its arguments; default MNEME_SERVER,
   * else `mneme-server` on the PATH.
   */
  readonly serverCommand?: string | readonly string[] | undefined;
}

/**
 * Makes a client. It connects with the first call, and again when the connection breaks.
 *
 * Requests are plain values: Dates for times, milliseconds for durations, objects for JSON and
 * nested messages, names for enums. Answers are the API's messages. Failures are `MnemeError`s.
 *
 * Calls that have the effect of one when they are sent twice are sent again while the server
 * cannot be reached; ids that the caller leaves open are made here for that purpose. What a server
 * refuses with a delay (a rate limit, a full queue) is sent again after that delay when the
 * call's time allows.
 *
 * @throws ConfigurationError: the options cannot be used.
 */
export function createMneme(options: MnemeOptions = {}): Mneme {
  return mnemeOn(() => anyConnectionOf(options), options);
}

/**
 * Makes a client like `createMneme`'s with the methods of a few services only:
 * `createMnemeOf([recallMethods])`.
 *
 * @throws ConfigurationError: the options cannot be used.
 */
export function createMnemeOf<S extends AnyMethods>(
  services: readonly S[],
  options: MnemeOptions = {},
): Connected & MethodsOf<S> {
  return openedOn(() => anyConnectionOf(options), services, options).client;
}

function anyConnectionOf(options: MnemeOptions): Connection {
  const { local } = options;
  return local === undefined ? connectionOf(options) : folderConnectionOf({ ...options, local });
}
