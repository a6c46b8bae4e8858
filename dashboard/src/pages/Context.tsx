/** Wake-up and context: exactly the text that an agent would get, and what it rests on. */

import type {
  GetContextResponseJson,
  HandoverJson,
  SuggestionJson,
  WakeUpResponseJson,
} from "@mneme/client/http";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../api/load";
import { context } from "../api/services";
import { Badge, Empty, PageHeader, ScoreBar, Section, Show, Time } from "../components/basics";
import { AgentFilter, Filters, TextFilter } from "../components/filters";
import { announce } from "../components/live";
import { Text } from "../components/text";
import { count, num, plural } from "../format";
import { eventHref, sourceHref } from "../links";
import { filter, narrowing, to, withQuery } from "../router";
import "../styles/context.css";

export default function Context() {
  const about = filter("view") === "topic";
  return (
    <>
      <PageHeader
        title="Wake-up and context"
        about="Exactly the text that an agent gets when it begins, or when it asks about a topic."
      />
      <nav class="tabs" aria-label="Views">
        <a href={withQuery({ view: "" })} aria-current={about ? undefined : "page"}>
          Wake-up
        </a>
        <a href={withQuery({ view: "topic" })} aria-current={about ? "page" : undefined}>
          Context on a topic
        </a>
      </nav>
      {about ? <OnTopic /> : <AtWakeUp />}
    </>
  );
}

function AtWakeUp() {
  const of = narrowing({ project: "project", agentId: "agent", userId: "user" });
  const woken = useLoad(
    (signal) => context.wakeUp(of, { signal }),
    [of.project, of.agentId, of.userId],
  );
  return (
    <>
      <Filters names={["project", "agent", "user"]}>
        <TextFilter name="project" label="Project" placeholder="the latest" />
        <AgentFilter />
        <TextFilter name="user" label="User" />
      </Filters>
      <Show of={woken} lines={8}>
        {(answer) => (
          <div class="told">
            <Prompt text={answer.text ?? ""} />
            <div>
              <WakeUpEvidence answer={answer} />
            </div>
          </div>
        )}
      </Show>
    </>
  );
}

function OnTopic() {
  const topic = filter("topic");
  const of = narrowing({ userId: "user", agentId: "agent", project: "project" });
  const found = useLoad<GetContextResponseJson | null>(
    async (signal) =>
      topic ? await context.getContext({ topic, ...of, peek: true }, { signal }) : null,
    [topic, of.userId, of.agentId, of.project],
  );
  return (
    <>
      <Filters names={["topic", "project", "agent", "user"]}>
        <TextFilter name="topic" label="Topic" placeholder="what the agent is about to do" wide />
        <TextFilter name="project" label="Project" />
        <AgentFilter />
        <TextFilter name="user" label="User" />
      </Filters>
      {topic ? (
        <Show of={found} lines={8}>
          {(answer) =>
            answer && (
              <div class="told">
                <Prompt text={answer.text ?? ""} />
                <div>
                  <ContextEvidence answer={answer} />
                </div>
              </div>
            )
          }
        </Show>
      ) : (
        <Empty title="What is the agent about to do?">
          <p>Name a topic, such as “change a large table”, to see what it would be told.</p>
        </Empty>
      )}
    </>
  );
}

/** The text itself. */
function Prompt({ text }: { text: string }) {
  // The text that was copied: the next one has not been.
  const [copied, setCopied] = useState("");
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(text);
    announce("Copied");
  };
  return (
    <Section
      title="What the agent is told"
      about={`${count(text.length)} characters, word for word`}
      actions={
        // Browsers have no clipboard for pages that came unencrypted from another machine.
        text &&
        navigator.clipboard && (
          <button type="button" onClick={copy}>
            {copied === text ? "Copied" : "Copy"}
          </button>
        )
      }
    >
      {text ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard.
        <pre class="prompt" tabIndex={0}>
          {text}
        </pre>
      ) : (
        <p class="muted">Nothing: no session was recorded that it could rest on.</p>
      )}
    </Section>
  );
}

function WakeUpEvidence({ answer }: { answer: WakeUpResponseJson }) {
  const { lastHandover, lastSummary, related = [], patterns = [], suggestions = [] } = answer;
  return (
    <>
      {lastHandover && <LeftBehind handover={lastHandover} />}
      {!lastHandover && lastSummary && (
        <Section
          title="The last session"
          actions={<a href={to("sessions", lastSummary.sessionId ?? "")}>Open</a>}
        >
          <Text value={lastSummary.summary ?? ""} />
        </Section>
      )}
      {suggestions.length > 0 && (
        <Section title="Next steps it suggests">
          <ul class="evidence">
            {suggestions.map((suggestion) => (
              <li key={suggestion.description}>
                <p>
                  <Badge tone="info">{suggestion.type?.replaceAll("_", " ")}</Badge>{" "}
                  {suggestion.description}
                </p>
                <Sources of={suggestion} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {patterns.length > 0 && (
        <Section title="What recurs">
          <ul class="evidence">
            {patterns.map((pattern) => (
              <li key={pattern.description}>
                <p>
                  <Badge>{pattern.type?.replaceAll("_", " ")}</Badge> {pattern.description}
                </p>
                <Sources of={pattern} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section
        title="Related sessions"
        about={`Of ${plural(answer.sessionsConsidered, "session")} compared with the last one.`}
      >
        {answer.notCompared && (
          <p class="muted">Not compared yet: the last session is not embedded.</p>
        )}
        {related.length === 0 ? (
          <p class="muted">No earlier session resembles it.</p>
        ) : (
          <ul class="evidence">
            {related.map((session) => (
              <Ranked
                key={session.sessionId}
                href={to("sessions", session.sessionId ?? "")}
                title={session.sessionId ?? ""}
                score={num(session.score)}
                note={<Time value={session.createdAt} />}
              >
                {session.summary}
              </Ranked>
            ))}
          </ul>
        )}
      </Section>
    </>
  );
}

function LeftBehind({ handover }: { handover: HandoverJson }) {
  const lists = [
    ["Done", handover.progress],
    ["Still to do", handover.openTodos?.map((todo) => todo.content ?? "")],
    [
      "Decided",
      handover.decisions?.map(
        ({ decision, rationale }) => `${decision}${rationale ? `, because ${rationale}` : ""}`,
      ),
    ],
    ["Unresolved errors", handover.unresolvedErrors],
    ["Files", handover.files],
  ] as const;
  return (
    <Section
      title="The last handover"
      about={<Time value={handover.createdAt} exact />}
      actions={<a href={to("sessions", handover.sessionId ?? "")}>Its session</a>}
    >
      {lists.map(
        ([name, items = []]) =>
          items.length > 0 && (
            <div key={name} class="left">
              <h3>{name}</h3>
              <ul>
                {items.map((item) => (
                  <li key={item}>{item}</li>
                ))}
              </ul>
            </div>
          ),
      )}
    </Section>
  );
}

function ContextEvidence({ answer }: { answer: GetContextResponseJson }) {
  const { sessions = [], lessons = [], reflections = [], episodes = [], skills = [] } = answer;
  return (
    <>
      {answer.wordsOnly && <p class="fine">By words alone: the model did not answer in time.</p>}
      <Section title="Sessions" about={`The best of ${plural(answer.totalSessions, "session")}.`}>
        {sessions.length === 0 && <p class="muted">None bears on it.</p>}
        <ul class="evidence">
          {sessions.map((session) => (
            <Ranked
              key={session.sessionId}
              href={to("sessions", session.sessionId ?? "")}
              title={session.sessionId ?? ""}
              score={num(session.relevanceScore)}
              note={<Time value={session.startedAt} />}
            >
              {session.summary?.split("\n")[0]}
              <ul class="moments">
                {session.keyEvents?.map((event) => (
                  <li key={event.eventId}>
                    <a href={eventHref(session.sessionId ?? "", event.eventId ?? "")}>
                      {event.summary}
                    </a>
                  </li>
                ))}
              </ul>
            </Ranked>
          ))}
        </ul>
      </Section>
      {lessons.length > 0 && (
        <Section title="Lessons">
          <ul class="evidence">
            {lessons.map(({ lesson = {}, score }) => (
              <Ranked
                key={lesson.id}
                href={to("lessons", lesson.id ?? "")}
                title={lesson.title ?? ""}
                score={num(score)}
                note={lesson.category}
              >
                {lesson.content}
              </Ranked>
            ))}
          </ul>
        </Section>
      )}
      {reflections.length > 0 && (
        <Section title="Reflections">
          <ul class="evidence">
            {reflections.map(({ reflection = {}, score }) => (
              <Ranked
                key={reflection.id}
                href={sourceHref({ sourceType: "reflection", sourceId: reflection.id ?? "" }) ?? ""}
                title={reflection.taskDescription ?? ""}
                score={num(score)}
              >
                {reflection.nextStrategy}
              </Ranked>
            ))}
          </ul>
        </Section>
      )}
      {(episodes.length > 0 || skills.length > 0) && (
        <Section title="Earlier attempts and skills">
          <ul class="evidence">
            {episodes.map((episode) => (
              <Ranked
                key={episode.episodeId}
                href={to("episodes", episode.episodeId ?? "")}
                title={episode.task ?? ""}
                score={num(episode.score)}
                note={episode.success ? "succeeded" : "failed"}
              />
            ))}
            {skills.map((skill) => (
              <Ranked
                key={skill.skillId}
                href={to("skills", skill.skillId ?? "")}
                title={skill.name ?? ""}
                score={num(skill.score)}
              >
                {skill.description}
              </Ranked>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function Ranked(props: {
  href: string;
  title: string;
  score: number;
  note?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <li>
      <p class="ranked">
        <a href={props.href}>{props.title}</a>
        <span class="fine">{props.note}</span>
        <ScoreBar value={props.score} label="Score" />
      </p>
      {props.children && <div class="said">{props.children}</div>}
    </li>
  );
}

/** Where a claim comes from. */
function Sources({ of }: { of: Pick<SuggestionJson, "sessionIds" | "eventIds"> }) {
  const [session, ...others] = of.sessionIds ?? [];
  const one = session !== undefined && others.length === 0 ? session : undefined;
  return (
    <p class="fine about-line">
      {(of.sessionIds ?? []).map((id) => (
        <a key={id} href={to("sessions", id)}>
          {id}
        </a>
      ))}
      {one !== undefined &&
        (of.eventIds ?? []).map((id) => (
          <a key={id} href={eventHref(one, id)}>
            event {id}
          </a>
        ))}
    </p>
  );
}
