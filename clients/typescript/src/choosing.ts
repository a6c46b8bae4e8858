import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { MnemeError } from "./errors.js";
import type { Action, Prediction } from "./gen/mneme/v1/learning_pb.js";
import type { Mneme } from "./mneme.js";

const ALGORITHM = "thompson";

/** A label, or an object as a label. */
export type Option = string | JsonObject;

type ChoosingClient = Pick<Mneme, "startLearningSession" | "predict" | "feedback">;

/** How a chooser learns. */
export interface ChooserOptions {
  /** What learns; `thompson` (the default) and `linucb` learn from tens of rewards. */
  readonly algorithm?: string | undefined;
  /** The algorithm's keys; those left out have their defaults. */
  readonly config?: JsonObject | undefined;
  /** The reward of work that ended without naming another one. Default: 1. */
  readonly success?: number | undefined;
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

/** A choice among options, and what came of it. */
export class Choice<O extends Option> {
  /** What was chosen. */
  readonly action: O;
  /** All that the server said. */
  readonly prediction: Prediction;
  #reward: number | undefined;

  constructor(action: O, prediction: Prediction) {
    this.action = action;
    this.prediction = prediction;
  }

  /** The probability that none of the other options is better, from 0 to 1. */
  get confidence(): number {
    return this.prediction.confidence;
  }

  /** Whether another one is thought to be better, and this one was chosen to learn. */
  get explored(): boolean {
    return this.prediction.explored;
  }

  /** Says how good what came of it was; the larger the better, usually from 0 to 1. */
  reward(amount: number): void {
    this.#reward = amount;
  }

  /** The reward that was told, if any. */
  get told(): number | undefined {
    return this.#reward;
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
   * Chooses one of the options, does the work, and tells what came of it: the reward that the work
   * named, or that of a success; of work that failed that of a failure, and its error goes on.
   *
   * @returns what the work returned.
   * @throws MnemeError: nothing could be chosen, or the reward not be told; an AggregateError of
   *   both when the work itself had failed.
   */
  async choose<O extends Option, T>(
    among: readonly O[],
    { state = {} }: Situation,
    work: (choice: Choice<O>) => T | Promise<T>,
  ): Promise<T> {
    const { success = 1, failure = 0 } = this.#options;
    const choice = await this.#chosen(among, state);
    let result: T;
    try {
      result = await work(choice);
    } catch (error) {
      try {
        await this.#tell(choice, failure);
      } catch (untold) {
        throw new AggregateError([error, untold], "the work failed, and so did learning from it");
      }
      throw error;
    }
    await this.#tell(choice, success);
    return result;
  }

  async #chosen<O extends Option>(among: readonly O[], state: JsonObject): Promise<Choice<O>> {
    const { algorithm = ALGORITHM, config = {}, explore = true } = this.#options;
    const sessionId = this.#sessionId;
    if (!Array.isArray(among)) {
      throw new TypeError(`among: should be a list of options, not ${JSON.stringify(among)}`);
    }
    if (typeof state !== "object" || state === null || Array.isArray(state)) {
      throw new TypeError(
        `state: should be an object like {"task_type": "auth"}, not ${JSON.stringify(state)}`,
      );
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
    return new Choice(action, prediction);
  }

  async #tell(choice: Choice<Option>, otherwise: number): Promise<void> {
    const { predictionId } = choice.prediction;
    const reward = choice.told ?? otherwise;
    await this.#client.feedback({ sessionId: this.#sessionId, predictionId, reward });
  }
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
