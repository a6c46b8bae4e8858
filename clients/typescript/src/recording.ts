import { pauseFor } from "./attempts.js";
import type { Call, Caller, CallOptions, Items } from "./caller.js";
import { MnemeError } from "./errors.js";
import { messageOf, withIds } from "./fields.js";
import type { StreamEventsRequest, StreamEventsResponse } from "./gen/mneme/v1/event_service_pb.js";
import { Backoff, DEFAULT_PATIENCE_MS, isPassing } from "./resuming.js";

// What may be sent without being acknowledged: it is kept, to be sent again. The server writes a
// batch when it holds fewer, so it never waits for more than it is sent.
const MOST_EVENTS = 2000;

/** What became of the events that were recorded so far. */
export interface Recorded {
  /** Events that are durable. */
  readonly acknowledgedCount: number;
  /** Of them, those newly recorded. */
  readonly recordedCount: number;
  /**
   * Of them, those that had been recorded before; also such as were recorded just before a
   * connection broke, and came again.
   */
  readonly duplicateCount: number;
}

/** How all events are recorded. */
export interface RecordAllOptions extends CallOptions {
  /** Called with the counts so far when more has become durable. */
  readonly onAcknowledged?: ((recorded: Recorded) => void) | undefined;
}

/** How patient the client is. */
export interface Patience {
  readonly retries: number;
  readonly timeoutMs: number | null;
}

/** Records events over one stream after another, until all are acknowledged. */
export async function recordAll(
  caller: Caller,
  call: Call,
  events: Items<object>,
  patience: Patience,
  options: RecordAllOptions,
): Promise<Recorded> {
  const { onAcknowledged, timeoutMs = null, signal } = options;
  const patienceMs = patience.retries > 0 ? (patience.timeoutMs ?? DEFAULT_PATIENCE_MS) : 0;
  const backoff = new Backoff(patienceMs, timeoutMs);
  const upload = new Upload(call, events);
  try {
    for (;;) {
      try {
        const left = { timeoutMs: backoff.timeLeft(), signal };
        const answers = caller.bidirectional(call, upload.requests(), left);
        for await (const answer of answers) {
          if (upload.acknowledge(answer as StreamEventsResponse)) {
            backoff.reset();
          }
          onAcknowledged?.(upload.recorded);
        }
        upload.requireAll();
        return upload.recorded;
      } catch (error) {
        const passes = error instanceof MnemeError && isPassing(error);
        const pause = passes ? backoff.pauseAfter(error) : undefined;
        if (pause === undefined) {
          throw error;
        }
        await pauseFor(pause, signal);
      }
    }
  } finally {
    upload.end();
  }
}

/**
 * The events of an upload, for one stream after another. They are asked for apart from the
 * streams, so that a stream which breaks off does not end the caller's iterator.
 */
class Upload {
  recorded: Recorded = { acknowledgedCount: 0, recordedCount: 0, duplicateCount: 0 };
  readonly #call: Call;
  #before = this.recorded;
  #kept: StreamEventsRequest[] = [];
  #stream = 0;
  #sent = 0;
  #isExhausted = false;
  #isOver = false;
  #error: { thrown: unknown } | undefined;
  #change = new Signal();

  constructor(call: Call, events: Items<object>) {
    this.#call = call;
    void this.#ask(events);
  }

  /** Begins a stream: yields what is not acknowledged, then what is new. */
  async *requests(): AsyncGenerator<StreamEventsRequest> {
    this.#stream += 1;
    const stream = this.#stream;
    this.#sent = 0;
    this.#before = this.recorded;
    this.#changed();
    while (stream === this.#stream) {
      const request = this.#kept[this.#sent];
      if (request !== undefined) {
        this.#sent += 1;
        yield request;
      } else if (this.#error) {
        throw this.#error.thrown;
      } else if (this.#isExhausted) {
        return;
      } else {
        await this.#change.given;
      }
    }
  }

  /** Lets go what is durable, and tells whether anything is. */
  acknowledge(answer: StreamEventsResponse): boolean {
    const acknowledgedCount = this.#before.acknowledgedCount + Number(answer.acknowledgedCount);
    const fresh = acknowledgedCount - this.recorded.acknowledgedCount;
    this.#kept.splice(0, fresh);
    this.#sent -= fresh;
    this.recorded = {
      acknowledgedCount,
      recordedCount: this.#before.recordedCount + Number(answer.recordedCount),
      duplicateCount: this.#before.duplicateCount + Number(answer.duplicateCount),
    };
    this.#changed();
    return fresh > 0;
  }

  /** Throws when a stream that has ended well left something out: it has to be sent again. */
  requireAll(): void {
    if (this.#kept.length > 0) {
      const message = "the stream ended before all of its events were acknowledged";
      throw new MnemeError(message, { code: "UNAVAILABLE" });
    }
  }

  /** Sends nothing more. */
  end(): void {
    this.#isOver = true;
    this.#stream += 1;
    this.#changed();
  }

  async #ask(events: Items<object>): Promise<void> {
    const { item, method, madeIds } = this.#call;
    try {
      for await (const event of events) {
        while (this.#kept.length >= MOST_EVENTS && !this.#isOver) {
          await this.#change.given;
        }
        if (this.#isOver) {
          return;
        }
        const request = messageOf(method.input, { [item as string]: event });
        this.#kept.push(withIds(request as StreamEventsRequest, madeIds));
        this.#changed();
      }
    } catch (thrown) {
      this.#error = { thrown };
    } finally {
      this.#isExhausted = true;
      this.#changed();
    }
  }

  #changed(): void {
    this.#change.give();
    this.#change = new Signal();
  }
}

class Signal {
  give: () => void = () => undefined;
  readonly given = new Promise<void>((resolve) => {
    this.give = resolve;
  });
}
