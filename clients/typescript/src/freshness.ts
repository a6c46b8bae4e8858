import type { Interceptor } from "@connectrpc/connect";

const TOKEN = "mneme-consistency-token";
const AT_LEAST_AS_FRESH = "mneme-at-least-as-fresh";
// Characters that tokens of one store have in common; the larger of two such is the newer.
const STORE = 16;

/** The newest token that a write was answered with, which goes along with every call. */
export class Freshness {
  /** The token; empty before the first write. */
  token = "";
  readonly #sent: boolean;

  constructor(sent: boolean) {
    this.#sent = sent;
  }

  /** Sends the token, and takes what answers tell. */
  readonly interceptor: Interceptor = (next) => async (request) => {
    const asked = this.token;
    if (asked && this.#sent) {
      request.header.set(AT_LEAST_AS_FRESH, asked);
    }
    const response = await next(request);
    if (!response.stream) {
      this.#note(response.trailer, asked);
      return response;
    }
    return { ...response, message: this.#noting(response.message, response.trailer, asked) };
  };

  /** A stream's trailers are there when it has ended. */
  async *#noting<T>(messages: AsyncIterable<T>, trailer: Headers, asked: string) {
    yield* messages;
    this.#note(trailer, asked);
  }

  #note(trailer: Headers, asked: string): void {
    if (trailer.has(AT_LEAST_AS_FRESH) && this.token === asked) {
      this.token = ""; // What was known then is not there any more.
    }
    const token = trailer.get(TOKEN) ?? "";
    if (token && (token.slice(0, STORE) !== this.token.slice(0, STORE) || token > this.token)) {
      this.token = token;
    }
  }
}
