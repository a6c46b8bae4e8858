import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Connection, Items } from "./caller.js";
import { Chooser, type ChooserOptions } from "./choosing.js";
import type { NewEventInit } from "./gen/inits.js";
import { type AllMethods, allMethods } from "./gen/services/all.js";
import { eventMethods } from "./gen/services/event.js";
import { type Connected, openedOn, type Patience } from "./methods.js";
import { type ResultOptions, resultOf, type Started } from "./operations.js";
import { type RecordAllOptions, type Recorded, recordAll } from "./recording.js";
import { type Attempt, type AttemptOptions, attempt } from "./reflecting.js";

/** A connection to a Mneme server, with a method for every RPC. */
export interface Mneme extends Connected, AllMethods {
  /**
   * An attempt at a task: loads past lessons, does the work, and stores a reflection: a success,
   * or, with the error's text, a failure, whose error goes on.
   *
   * @throws MnemeError: the lessons could not be loaded or the reflection not stored; an
   *   AggregateError of both when the work itself had failed.
   */
  attempt<T>(
    task: string,
    options: AttemptOptions,
    work: (attempt: Attempt) => T | Promise<T>,
  ): Promise<T>;
  /**
   * Something that chooses among options by what worked, and learns what works.
   *
   * @param sessionId the learning session; started when it is first needed, and gone on with if it
   *   exists.
   */
  chooser(sessionId: string, options?: ChooserOptions): Chooser;
  /**
   * Records any number of events by `streamEvents`, and resumes when the stream breaks off. What the
   * server has not acknowledged is kept (2,000 events at most) and sent again under the ids that
   * the events have or are given here, so that nothing is lost or doubled.
   *
   * @param options `timeoutMs` is for all of it. A broken stream is resumed for as long as the
   *   client waits for a call, counted from the last acknowledgement.
   */
  recordAll(events: Items<NewEventInit>, options?: RecordAllOptions): Promise<Recorded>;
  /**
   * Waits until an operation has ended, also through a restart of the server, and returns what it
   * came to: `await mneme.resultOf(await mneme.backup(), BackupResultSchema)`.
   *
   * @param started what the call that started it answered, the operation, or its id
   * @param schema what it ends with
   * @throws MnemeError: it failed or was cancelled; or it has not ended in time, and goes on.
   */
  resultOf<D extends DescMessage>(
    started: Started,
    schema: D,
    options?: ResultOptions,
  ): Promise<MessageShape<D>>;
}

/**
 * The client on a connection, whatever that speaks.
 *
 * @throws ConfigurationError: the options cannot be used; nothing was connected.
 */
export function mnemeOn(connect: () => Connection, options: Patience): Mneme {
  const { client, caller, patience } = openedOn(connect, allMethods, options);
  const { streamEvents } = eventMethods.calls;
  return Object.assign(client, {
    attempt: <T>(
      task: string,
      about: AttemptOptions,
      work: (attempt: Attempt) => T | Promise<T>,
    ): Promise<T> => attempt(client, task, about, work),
    chooser: (sessionId: string, about: ChooserOptions = {}) =>
      new Chooser(client, sessionId, about),
    recordAll: (events: Items<NewEventInit>, about: RecordAllOptions = {}) =>
      recordAll(caller, streamEvents, events, patience, about),
    resultOf: <D extends DescMessage>(started: Started, schema: D, about: ResultOptions = {}) =>
      resultOf(client.waitOperation, started, schema, about),
  });
}
