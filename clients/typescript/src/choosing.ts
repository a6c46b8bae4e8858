import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { MnemeError } from "./errors.js";
import type { Action, Prediction } from "./gen/mneme/v1/learning_pb.js";
import type { Explanation } from "./gen/mneme/v1/learning_trust_pb.js";
import type { Mneme } from "./mneme.js";
import { newUlid } from "./ulid.js";

const ALGORITHM = "thompson";

/** A label, or an object as a label. */
export type Option = string | JsonObject;

type ChoosingClient = Pick<Mneme, "startLearningSession" | "predict" | "feedback" | "explain">;

/** How a chooser learns. */
export interface ChooserOptions {
  /** What learns; `thompson` (the default) and `linucb` learn from tens of rewards. */
  readonly algorithm?: string | undefined;
  /** The algorithm's keys; those left out have their defaults. */
  readonly config?: JsonObject | undefined;
  /** The reward of work that failed. Default: 0. */
  readonly failure?: number | undefined;
  /** Whether to try options to learn from. Default: true; if not, the best so far is chosen. */
  readonly explore?: boolean | undefined;
}

/** What is known of the situation of a choice. */
export interface Situation {
  /** As JSON. Default: nothing. */
  readonly state?: JsonObject | undefined;
}

/** Which choice is to be explained. */
export interface Explained extends Situation {
  /** The options. Default: all that are known. */
  readonly among?: readonly Option[] | undefined;
  /** The option to explain. Default: the one that would be chosen. */
  readonly action?: Option | undefined;
}

/**
 * A choice, which waits for its reward: a minute, a month, in this program or by its id in another
 * one.
 */
export class Choice<O extends Option> {
  /** What was chosen. */
  readonly action: O;
  /** All that the server said. */
  readonly prediction: Prediction;
  readonly #tell: (amount: number) => Promise<void>;
  readonly #told: Promise<void>[] = [];

  constructor(action: O, prediction: Prediction, tell: (amount: number) => Promise<void>) {
    this.action = action;
    this.prediction = prediction;
    this.#tell = tell;
  }

  /** By this its reward is told in another program, too: see `Chooser.reward`. */
  get id(): string {
    return this.prediction.predictionId;
  }

  /** The probability that none of the other options is better, from 0 to 1. */
  get confidence(): number {
    return this.prediction.confidence;
  }

  /** Whether another one is thought to be better, and this one was chosen to learn. */
  get explored(): boolean {
    return this.prediction.explored;
  }

  /**
   * Tells how good what came of it was, now: there is one reward for each choice.
   *
   * @param amount the larger the better, usually from 0 to 1; true and false are 1 and 0.
   * @throws TypeError: it is no finite number.
   * @throws MnemeError: ALREADY_EXISTS, the choice has another reward; NOT_FOUND, it comes too
   *   late, more than 30 days after the choice.
   */
  reward(amount: number | boolean): Promise<void> {
    const told = this.#tell(asAmount(amount));
    this.#told.push(told);
    return told;
  }

  /** Waits for what was told while the work was done, and says whether there was anything. */
  async settled(): Promise<boolean> {
    await Promise.all(this.#told);
    return this.#told.length > 0;
  }
}

/** Chooses among options by what worked, and learns what works: see `Mneme.chooser`. */
export class Chooser {
  readonly #client: ChoosingClient;
  readonly #sessionId: string;
  readonly #options: ChooserOptions;
  #started = false;

  constructor(client: ChoosingClient, sessionId: string, options: ChooserOptions) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#options = options;
  }

  /**
   * Chooses one of the options; its reward is told when it is known.
   *
   * @throws TypeError: there are no options.
   */
  async pick<O extends Option>(
    among: readonly O[],
    { state = {} }: Situation = {},
  ): Promise<Choice<O>> {
    const { algorithm = ALGORITHM, config = {}, explore = true } = this.#options;
    const sessionId = this.#sessionId;
    requireObject(state);
    if (!Array.isArray(among)) {
      throw new TypeError(`among: should be a list of options, not ${JSON.stringify(among)}`);
    }
    if (among.length === 0) {
      throw new TypeError("there is nothing to choose from: name options");
    }
    if (!this.#started) {
      await this.#client.startLearningSession({ sessionId, algorithm, config });
      this.#started = true;
    }
    const { prediction } = await this.#client.predict({
      sessionId,
      state: { value: { case: "json", value: state } },
      allowedActions: among.map((option) => ({ value: asValue(option) })),
      explore,
    });
    const action = among.find((one) => sameAction(asValue(one), prediction?.action));
    if (prediction === undefined || action === undefined) {
      throw new MnemeError("the server chose none of the options", { code: "INTERNAL" });
    }
    // One id for all tries, so that a reward that arrived though its answer was lost counts once.
    const feedbackId = newUlid();
    return new Choice(action, prediction, async (reward) => {
      const { predictionId } = prediction;
      await this.#client.feedback({ sessionId, predictionId, feedbackId, reward });
    });
  }

  /**
   * Chooses one of the options and does the work, which tells its reward, at once or later: a
   * choice that it leaves without one stays open. Work that throws has the reward of a failure,
   * unless it told another one, and its error goes on.
   *
   * @returns what the work returned.
   * @throws MnemeError: nothing could be chosen, or the reward not be told; an AggregateError of
   *   both when the work itself had failed.
   */
  async choose<O extends Option, T>(
    among: readonly O[],
    situation: Situation,
    work: (choice: Choice<O>) => T | Promise<T>,
  ): Promise<T> {
    const choice = await this.pick(among, situation);
    let result: T;
    try {
      result = await work(choice);
    } catch (error) {
      try {
        if (!(await choice.settled())) {
          await choice.reward(this.#options.failure ?? 0);
        }
      } catch (untold) {
        if (untold === error) {
          throw error;
        }
        throw new AggregateError([error, untold], "the work failed, and so did learning from it");
      }
      throw error;
    }
    await choice.settled();
    return result;
  }

  /**
   * Tells how good what came of a choice was, perhaps one of another program.
   *
   * @param choiceId the choice's `id`.
   * @param amount the larger the better, usually from 0 to 1; true and false are 1 and 0.
   * @throws TypeError: the amount is no finite number.
   * @throws MnemeError: as `Choice.reward`; NOT_FOUND also where the choice is none of this session.
   */
  async reward(choiceId: string, amount: number | boolean): Promise<void> {
    const sessionId = this.#sessionId;
    const reward = asAmount(amount);
    await this.#client.feedback({ sessionId, predictionId: choiceId, reward });
  }

  /**
   * Explains what is chosen in a situation: how much each part of it speaks for the action, and what
   * would have to differ for another one.
   *
   * @throws MnemeError: FAILED_PRECONDITION, nothing has been learned yet.
   */
  async explain({
    state = {},
    among = [],
    action,
  }: Explained = {}): Promise<Explanation | undefined> {
    requireObject(state);
    const { explanation } = await this.#client.explain({
      sessionId: this.#sessionId,
      state: { value: { case: "json", value: state } },
      allowedActions: among.map((option) => ({ value: asValue(option) })),
      ...(action === undefined ? {} : { action: { value: asValue(action) } }),
    });
    return explanation;
  }
}

function requireObject(state: unknown): void {
  if (typeof state !== "object" || state === null || Array.isArray(state)) {
    throw new TypeError(
      `state: should be an object like {"task_type": "auth"}, not ${JSON.stringify(state)}`,
    );
  }
}

function asAmount(amount: unknown): number {
  const number = typeof amount === "boolean" ? Number(amount) : amount;
  if (typeof number !== "number" || !Number.isFinite(number)) {
    throw new TypeError(
      `reward: should be a finite number such as 1, 0 or 0.5, not ${JSON.stringify(amount)}`,
    );
  }
  return number;
}

function asValue(option: Option) {
  return typeof option === "string"
    ? { case: "label" as const, value: option }
    : { case: "json" as const, value: option };
}

function sameAction(option: ReturnType<typeof asValue>, action: Action | undefined): boolean {
  const chosen = action?.value;
  return chosen?.case === option.case && isSame(chosen.value, option.value);
}

/** Whether two values of JSON are the same, whatever the order of their keys. */
function isSame(one: JsonValue, other: JsonValue): boolean {
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) {
    return one === other;
  }
  const keys = Object.keys(one);
  return (
    Array.isArray(one) === Array.isArray(other) &&
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSame(at(one, key), at(other, key)))
  );
}

function at(value: object, key: string): JsonValue {
  return (value as Record<string, JsonValue>)[key] as JsonValue;
}
