import { fitting, fittingAll } from "./fitting.js";
import { limits } from "./gen/limits.js";
import type { Reflection } from "./gen/mneme/v1/reflection_pb.js";
import type { Mneme } from "./mneme.js";

const PAST_LESSONS = 3;
const KEEP = "Continue with this approach";
const CHANGE = "Try a different approach";
// Words, not parts of them: "author", "latest" and "prefix" say nothing.
const TAGS: readonly (readonly [string, RegExp])[] = [
  ["authentication", words("o?auth|authenticat\\w*|authori[sz]\\w*")],
  ["testing", words("test(?:s|ed|ing)?")],
  ["debugging", words("errors?|bugs?|bugfix|fix(?:es|ed|ing)?|debug\\w*")],
  ["refactoring", words("refactor\\w*")],
];

/** What an attempt is about, and what it loads and stores. */
export interface AttemptOptions {
  /** The session of the attempt. */
  readonly sessionId: string;
  /** The project; past lessons are those of the same project. */
  readonly project?: string | undefined;
  /** The agent. */
  readonly agentId?: string | undefined;
  /** Labels of the reflection. Default: those that the task's words give. */
  readonly tags?: readonly string[] | undefined;
  /** Whether anything is loaded and stored at all. Default: true. */
  readonly enabled?: boolean | undefined;
  /** Whether a reflection is stored after the work. Default: true. */
  readonly autoReflect?: boolean | undefined;
  /** How many past lessons to load; 0: none. Default: 3. */
  readonly includePastLessons?: number | undefined;
}

/** What is known of one attempt, and what will be stored of it. */
export class Attempt {
  /** Past reflections on similar tasks, as text for a prompt; empty without any. */
  text = "";
  /** The same as answers, the most relevant first. */
  past: readonly Reflection[] = [];
  /** What to do next time; made of the outcome and of what worked before when it is empty. */
  nextStrategy = "";
  readonly #worked: string[] = [];
  readonly #didNot: string[] = [];
  #partial = false;

  /** Notes something that worked; of more than 50 notes, the last are stored. */
  worked(what: string): void {
    this.#worked.push(what);
  }

  /** Notes something that did not work; of more than 50 notes, the last are stored. */
  didNotWork(what: string): void {
    this.#didNot.push(what);
  }

  /** Says that only some of it worked, unless an error says that it failed. */
  partial(): void {
    this.#partial = true;
  }

  /** The fields of the reflection; `failed` holds the error of work that failed. */
  conclusion(failed?: { readonly error: unknown }) {
    const success = this.#partial ? ("partial" as const) : ("success" as const);
    return {
      outcome: failed ? ("failure" as const) : success,
      whatWorked: fittingAll(limits.whatWorked, this.#worked),
      whatDidNotWork: fittingAll(
        limits.whatDidNotWork,
        failed ? [...this.#didNot, said(failed.error)] : this.#didNot,
      ),
      nextStrategy: fitting(
        limits.nextStrategy,
        this.nextStrategy || (failed ? this.#suggestion() : KEEP),
      ),
      appliedReflectionIds: this.past.map((one) => one.id),
    };
  }

  #suggestion(): string {
    const [first] = this.past.flatMap((one) => one.whatWorked);
    return first === undefined ? CHANGE : `Try: ${first}`;
  }
}

/** The labels that a task's words give: what it is about, as far as that is plain. */
export function tagsOf(task: string): string[] {
  return TAGS.filter(([, pattern]) => pattern.test(task)).map(([tag]) => tag);
}

/** Past lessons before the work, a reflection after it: see `Mneme.attempt`. */
export async function attempt<T>(
  client: Pick<Mneme, "searchReflections" | "createReflection">,
  task: string,
  options: AttemptOptions,
  work: (attempt: Attempt) => T | Promise<T>,
): Promise<T> {
  const { sessionId, project = "", agentId = "", tags = tagsOf(task) } = options;
  const { enabled = true, autoReflect = true, includePastLessons = PAST_LESSONS } = options;
  const taskDescription = fitting(limits.taskDescription, task);
  const current = new Attempt();
  if (enabled && includePastLessons > 0) {
    const found = await client.searchReflections({
      taskDescription,
      filter: project ? { project } : {},
      limit: includePastLessons,
    });
    current.text = found.text;
    current.past = found.results.flatMap(({ reflection }) => reflection ?? []);
  }
  const store = async (failed?: { readonly error: unknown }) => {
    if (enabled && autoReflect) {
      const about = { sessionId, project, agentId, taskDescription };
      const labels = { tags: fittingAll(limits.tags, tags) };
      await client.createReflection({ ...about, ...labels, ...current.conclusion(failed) });
    }
  };
  let result: T;
  try {
    result = await work(current);
  } catch (error) {
    try {
      await store({ error });
    } catch (failure) {
      throw new AggregateError([error, failure], "the work failed, and so did its reflection");
    }
    throw error;
  }
  await store();
  return result;
}

function said(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function words(alternatives: string): RegExp {
  return new RegExp(`(?<![a-z])(?:${alternatives})(?![a-z])`, "i");
}
