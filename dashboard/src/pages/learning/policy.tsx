/** What a session would do: in each state where they can be listed, and in any that is typed. */

import type { ActionJson, LearningSessionJson, StateJson } from "@mneme/client/http";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useLoad } from "../../api/load";
import { learning } from "../../api/services";
import { Badge, Empty, ScoreBar, Section, Show } from "../../components/basics";
import { announce } from "../../components/live";
import { Table } from "../../components/table";
import { count, num, percent } from "../../format";
import { filter, navigate, withQuery } from "../../router";
import { Explained } from "./explanation";
import {
  exampleOf,
  figure,
  hasActions,
  listedStates,
  nameOf,
  readState,
  stateCount,
  type Typed,
} from "./values";

/** What is chosen in a state, and what is thought of the others. */
interface Choice {
  readonly action: ActionJson | undefined;
  readonly confidence: number;
  readonly actions: readonly {
    readonly action?: ActionJson;
    readonly value?: number | string;
    readonly probability?: number | string;
  }[];
}

export function Policy({ session, version }: { session: LearningSessionJson; version: string }) {
  const ended = session.status === "LEARNING_STATUS_ENDED";
  return (
    <Section
      title="What it would do"
      about="The best action so far, and the probability that none of the others is better. Asking writes nothing."
    >
      {!hasActions(session) ? (
        <Empty title="No action is known yet.">
          <p>It knows those that it was told of, or allowed.</p>
        </Empty>
      ) : ended && !session.trained ? (
        <p class="muted">It ended before it had learned anything.</p>
      ) : (
        <div class="stack">
          {!session.trained && (
            <p>
              <Badge tone="warn">untrained</Badge> Nothing is learned yet: it draws evenly.
            </p>
          )}
          {ended && (
            <p class="fine">
              It has ended, and predicts no more until it is started again. This is what it had
              learned.
            </p>
          )}
          <States session={session} version={version} />
          <Ask session={session} />
          <Asked session={session} version={version} />
        </div>
      )}
    </Section>
  );
}

/** Ask a session; one that ended no longer predicts, but still explains. */
async function choose(
  { id, status }: LearningSessionJson,
  state: StateJson,
  signal: AbortSignal,
): Promise<Choice> {
  const asked = { sessionId: id ?? "", state };
  if (status === "LEARNING_STATUS_ENDED") {
    const { explanation } = await learning.explain(asked, { signal });
    const { chosenAction: action, confidence } = explanation ?? {};
    return { action, confidence: num(confidence), actions: [] };
  }
  const { prediction } = await learning.predict(asked, { signal });
  const { action, confidence, actions = [] } = prediction ?? {};
  return { action, confidence: num(confidence), actions };
}

/** The policy as a table, where states can be listed. */
function States({ session, version }: { session: LearningSessionJson; version: string }) {
  const names = listedStates(session.stateSpace);
  const chosen = useLoad(
    async (signal) => {
      const asked = names.map(async (name) => {
        const read = readState(name, session.stateSpace);
        if ("problem" in read) throw new Error(read.problem);
        return { name, ...(await choose(session, read.state, signal)) };
      });
      return Promise.all(asked);
    },
    [session.id, version],
  );
  if (names.length === 0) return null;
  const all = stateCount(session.stateSpace);
  return (
    <Show of={chosen}>
      {(rows) => (
        <>
          <Table
            caption="The policy"
            rows={rows}
            keyOf={(row) => row.name}
            columns={[
              {
                name: "State",
                cell: (row) => (
                  <a class="learned" href={withQuery({ state: row.name, action: "" })}>
                    {row.name}
                  </a>
                ),
              },
              {
                name: "Action",
                cell: (row) => <strong class="learned">{nameOf(row.action)}</strong>,
              },
              {
                name: "Confidence",
                cell: (row) => <ScoreBar value={row.confidence} label="Confidence" />,
              },
              { name: "The others", wide: true, cell: (row) => <Others of={row} /> },
            ]}
          />
          {all > names.length && (
            <p class="fine">
              The first {count(names.length)} of {count(all)} states. Type any other below.
            </p>
          )}
        </>
      )}
    </Show>
  );
}

const OTHERS = 3;

/** The other actions, best first, with what they are thought to be worth. */
function Others({ of }: { of: Choice }) {
  const best = nameOf(of.action);
  const others = of.actions.filter((one) => nameOf(one.action) !== best);
  if (others.length === 0) return <span class="muted">–</span>;
  return (
    <span class="learned">
      {others.slice(0, OTHERS).map((one, at) => (
        <span key={nameOf(one.action)}>
          {at > 0 && ", "}
          {nameOf(one.action)}
          {one.value !== undefined && <span class="muted"> {figure(one.value)}</span>}
        </span>
      ))}
      {others.length > OTHERS && ` and ${count(others.length - OTHERS)} more`}
    </span>
  );
}

/** Where a state is typed; it becomes part of the address. */
function Ask({ session }: { session: LearningSessionJson }) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const asked = filter("state");
  useEffect(() => {
    if (field.current) field.current.value = asked;
  }, [asked]);
  const [problem, setProblem] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    const typed = field.current?.value.trim() ?? "";
    const read: Typed = typed
      ? readState(typed, session.stateSpace)
      : { problem: "Type a state first." };
    setProblem("problem" in read ? read.problem : "");
    if ("state" in read) navigate(withQuery({ state: typed, action: "" }));
  };
  return (
    <form class="ask" onSubmit={submit}>
      <label for={id}>Ask about a state</label>
      <input
        id={id}
        type="text"
        autoComplete="off"
        spellcheck={false}
        class="mono"
        ref={field}
        placeholder={exampleOf(session.stateSpace)}
        aria-invalid={Boolean(problem)}
        aria-describedby={problem ? `${id}-problem` : undefined}
      />
      <button type="submit">Ask</button>
      {problem && (
        <p id={`${id}-problem`} class="ask-problem" role="alert">
          {problem}
        </p>
      )}
    </form>
  );
}

/** The state of the address, if it is one. */
function Asked({ session, version }: { session: LearningSessionJson; version: string }) {
  const text = filter("state");
  if (!text) return null;
  const read = readState(text, session.stateSpace);
  if ("problem" in read) return <p class="muted">{read.problem}</p>;
  return <Answer key={text} session={session} version={version} state={read.state} text={text} />;
}

function Answer(props: {
  session: LearningSessionJson;
  version: string;
  state: StateJson;
  text: string;
}) {
  const { session, version, state, text } = props;
  const chosen = useLoad((signal) => choose(session, state, signal), [version]);
  const best = chosen.data && nameOf(chosen.data.action);
  useEffect(() => {
    if (best) announce(`It chooses ${best}`);
  }, [best]);
  return (
    <section class="answer stack" aria-label="The answer">
      <h3 class="learned">
        In <code>{text}</code>
      </h3>
      <Show of={chosen}>
        {(choice) => {
          const named = choice.actions.find((one) => nameOf(one.action) === filter("action"));
          return (
            <div class="stack">
              <p class="choice">
                <strong class="learned">{nameOf(choice.action)}</strong>
                <ScoreBar value={choice.confidence} label="Confidence" />
              </p>
              {choice.actions.length > 0 && <Scores of={choice} />}
              {session.trained && (
                <Explained
                  sessionId={session.id ?? ""}
                  state={state}
                  action={named?.action}
                  version={version}
                />
              )}
            </div>
          );
        }}
      </Show>
    </section>
  );
}

function Scores({ of }: { of: Choice }) {
  const asked = filter("action") || nameOf(of.action);
  return (
    <Table
      caption="Actions in this state"
      rows={of.actions}
      keyOf={(row) => nameOf(row.action)}
      columns={[
        { name: "Action", cell: (row) => <span class="learned">{nameOf(row.action)}</span> },
        {
          name: "Worth",
          right: true,
          cell: (row) => (row.value === undefined ? "–" : figure(row.value)),
        },
        {
          name: "Chosen",
          right: true,
          wide: true,
          cell: (row) => percent(row.probability, 0),
        },
        {
          name: "Why",
          cell: (row) => {
            const name = nameOf(row.action);
            if (name === asked) return <span class="muted">below</span>;
            const best = name === nameOf(of.action);
            return (
              <a
                href={withQuery({ action: best ? "" : name })}
                aria-label={`${best ? "Why" : "Why not"} ${name}`}
              >
                {best ? "Why?" : "Why not?"}
              </a>
            );
          },
        },
      ]}
    />
  );
}
