import { type ClientHttp2Session, connect } from "node:http2";
import type { Connection } from "./caller.js";
import { open } from "./connection.js";
import type { Freshness } from "./freshness.js";
import type { Record } from "./local-server.js";

const PATH = "/grpc.health.v1.Health/Watch";
/** A HealthCheckRequest that names no service, framed. */
const WHOLE_SERVER = Buffer.alloc(5);
/** The HealthCheckResponse of a server that takes calls, framed. */
const SERVING = Buffer.from([0, 0, 0, 0, 2, 8, 1]);

/**
 * A server that was joined. To take part is to watch its health, on a connection of its own that
 * does not keep this process running: the server runs for as long as anybody does.
 *
 * Both connections trust one certificate, which is the record's, so that each, also one that is
 * made anew, begins with the proof that this is the folder's server. The key follows after that.
 */
export class Participation {
  readonly connection: Connection;
  readonly #watch: ClientHttp2Session;
  #gone = false;

  private constructor(record: Record, watch: ClientHttp2Session, freshness: Freshness) {
    this.#watch = watch;
    const options = { ca: record.certificate };
    const url = `https://${record.address}`;
    const caller = { key: record.key, tenant: "" };
    this.connection = open(record.address, url, caller, options, freshness);
  }

  /** Joins; undefined when no server answers there that can show who it is. */
  static join(
    record: Record,
    timeoutMs: number,
    freshness: Freshness,
  ): Promise<Participation | undefined> {
    return new Promise((done) => {
      const session = connect(`https://${record.address}`, { ca: record.certificate });
      let joined: Participation | undefined;
      const lose = () => {
        clearTimeout(late);
        if (joined) {
          joined.#gone = true;
        }
        done(undefined); // Nothing, when it was joined before.
        session.destroy();
      };
      const late = setTimeout(lose, timeoutMs);
      session.on("error", lose);
      session.on("close", lose);
      const stream = session.request({
        ":method": "POST",
        ":path": PATH,
        "content-type": "application/grpc",
        te: "trailers",
      });
      let heard = Buffer.alloc(0);
      stream.on("data", (data: Buffer) => {
        heard = Buffer.concat([heard, data]);
        if (heard.equals(SERVING)) {
          clearTimeout(late);
          joined = new Participation(record, session, freshness);
          session.unref();
          done(joined);
        } else if (heard.length >= SERVING.length) {
          lose(); // It says that it ends.
        }
      });
      stream.on("error", lose);
      stream.on("close", lose);
      stream.end(WHOLE_SERVER);
    });
  }

  /** Whether the server has ended, as far as is known here. */
  get isGone(): boolean {
    return this.#gone;
  }

  /** Leaves; calls that are still open fail. */
  close(): void {
    this.connection.close();
    this.#watch.destroy();
  }
}
