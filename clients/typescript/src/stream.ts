/**
 * The messages of a server's stream, for `for await`. The call begins at once; leaving the loop
 * or `close` ends it.
 */
export class Stream<T> implements AsyncIterableIterator<T> {
  readonly #controller: AbortController;
  readonly #source: AsyncGenerator<T, void, undefined>;
  #first: Promise<IteratorResult<T, void>> | undefined;
  #closed = false;

  /** @internal */
  constructor(open: (signal: AbortSignal) => AsyncGenerator<T, void, undefined>) {
    this.#controller = new AbortController();
    this.#source = open(this.#controller.signal);
    this.#first = this.#source.next();
    // Whoever asks for the first message gets the error; until then it is nobody's.
    this.#first.catch(() => undefined);
  }

  /** The next message. */
  async next(): Promise<IteratorResult<T, void>> {
    const first = this.#first;
    this.#first = undefined;
    try {
      return await (this.#closed
        ? { done: true, value: undefined }
        : (first ?? this.#source.next()));
    } catch (error) {
      if (this.#closed) {
        return { done: true, value: undefined };
      }
      throw error;
    }
  }

  /** Ends the stream; called when a loop is left. */
  async return(): Promise<IteratorResult<T, void>> {
    this.close();
    return { done: true, value: undefined };
  }

  /** Ends the stream; who waits for a message is told that there are no more. */
  close(): void {
    if (!this.#closed) {
      this.#closed = true;
      this.#controller.abort();
      void this.#end();
    }
  }

  /** Reads on to the end, which is near: only there are the call's timers given up. */
  async #end(): Promise<void> {
    try {
      while (!(await this.#source.next()).done) {}
    } catch {
      // Whoever ended the stream does not ask how it ended.
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
