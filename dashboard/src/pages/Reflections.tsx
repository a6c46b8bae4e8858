/** Reflections: what agents said of their attempts, and what comes again in them. */

import type {
  FoundReflectionJson,
  OutcomeJson,
  ReflectionJson,
  ThemeJson,
} from "@mneme/client/http";
import { useLoad, usePages } from "../api/load";
import { learn } from "../api/services";
import {
  Badge,
  Empty,
  Facts,
  Figure,
  PageHeader,
  Section,
  Show,
  Time,
  type Tone,
} from "../components/basics";
import { ChoiceFilter, Filters, TextFilter } from "../components/filters";
import { Pages } from "../components/table";
import { Id, Text } from "../components/text";
import { count, num, percent, word } from "../format";
import type { PageProps } from "../pages";
import { filter, narrowing, to } from "../router";
import "../styles/remember.css";

const NAMES = ["q", "outcome", "agent", "project", "session", "tag"] as const;
const OUTCOMES = [
  ["", "Any"],
  ["success", "Success"],
  ["partial", "In part"],
  ["failure", "Failure"],
] as const;
const TONES: Readonly<Record<string, Tone>> = { success: "good", partial: "warn", failure: "bad" };
const FOUND = 20;

// No call gets one reflection: so many pages are turned to find a linked one.
const [TURNED, PAGE] = [20, 250];

export default function Reflections({ rest: [linked] }: PageProps) {
  if (linked) return <Linked key={linked} id={linked} />;
  return (
    <>
      <PageHeader
        title="Reflections"
        about="What agents said of their attempts: what worked, what did not, what to try next."
      />
      {/* It is of a project or a session: beside what other filters leave, it would not be of that. */}
      {!["q", "outcome", "agent", "tag"].some(filter) && <Summary />}
      <Filters names={NAMES}>
        <TextFilter name="q" label="Search" placeholder="a task, in your words" wide />
        <ChoiceFilter name="outcome" label="Outcome" choices={OUTCOMES} />
        <TextFilter name="agent" label="Agent" />
        <TextFilter name="project" label="Project" />
        <TextFilter name="session" label="Session" />
        <TextFilter name="tag" label="Label" />
      </Filters>
      {filter("q") ? <Found /> : <List />}
    </>
  );
}

/** The reflection that a link names. */
function Linked({ id }: { id: string }) {
  const found = useLoad((signal) => find(id, signal), [id]);
  return (
    <>
      <p class="crumbs">
        <a href="/reflections">Reflections</a>
      </p>
      <PageHeader title="Reflection" />
      <Show of={found} lines={6}>
        {({ reflection }) =>
          reflection ? (
            <One of={reflection} />
          ) : (
            <Empty title="This reflection is not there.">
              <p>
                It was deleted, or many newer ones were stored.{" "}
                <a href="/reflections">Look for it among all.</a>
              </p>
            </Empty>
          )
        }
      </Show>
    </>
  );
}

async function find(id: string, signal: AbortSignal): Promise<{ reflection?: ReflectionJson }> {
  let pageToken = "";
  for (let turned = 0; turned < TURNED; turned++) {
    const page = await learn.listReflections({ pageSize: PAGE, pageToken }, { signal });
    const reflection = page.reflections?.find((one) => one.id === id);
    if (reflection) return { reflection };
    pageToken = page.nextPageToken ?? "";
    if (!pageToken) break;
  }
  return {};
}

function reflectionFilter() {
  const outcome = filter("outcome").toUpperCase();
  return {
    ...narrowing({ agentId: "agent", project: "project", sessionId: "session" }),
    ...(filter("tag") && { tags: [filter("tag")] }),
    ...(outcome && { outcomes: [`OUTCOME_${outcome}` as OutcomeJson] }),
  };
}

function Summary() {
  const asked = narrowing({ project: "project", sessionId: "session" });
  const summary = useLoad(
    (signal) => learn.summarizeReflections(asked, { signal }),
    [asked.project, asked.sessionId],
  );
  return (
    <Show of={summary} lines={1}>
      {(said) =>
        num(said.totalReflections) > 0 && (
          <>
            <div class="figures">
              <Figure name="Reflections" value={count(said.totalReflections)} />
              <Figure name="Success" value={percent(said.successRate, 0)} />
              <Figure name="Searched" value={count(said.metrics?.searchCount)} note="times" />
              <Figure
                name="Used in other sessions"
                value={count(said.metrics?.crossSessionReuse)}
                note="times"
              />
            </div>
            <div class="grid">
              <Themes title="What fails again and again" themes={said.commonFailures} />
              <Themes title="What works again and again" themes={said.effectiveStrategies} />
            </div>
          </>
        )
      }
    </Show>
  );
}

function Themes(props: { title: string; themes: readonly ThemeJson[] | undefined }) {
  const themes = props.themes ?? [];
  if (themes.length === 0) return null;
  return (
    <Section title={props.title}>
      <ul class="rows">
        {themes.map((theme) => (
          <li key={theme.text} class="row">
            <span>{theme.text}</span>
            <Badge>{count(theme.count)} ×</Badge>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function List() {
  const inputs = NAMES.map(filter);
  const pages = usePages<ReflectionJson>(async (pageToken, signal) => {
    const asked = { filter: reflectionFilter(), pageSize: 25, pageToken };
    const page = await learn.listReflections(asked, { signal });
    return { items: page.reflections ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, inputs);
  return (
    <Pages
      of={pages}
      names={["reflection", "reflections"]}
      empty={<None filtered={inputs.some(Boolean)} />}
    >
      {(items) => items.map((one) => <One key={one.id} of={one} />)}
    </Pages>
  );
}

function Found() {
  const asked = {
    taskDescription: filter("q"),
    filter: reflectionFilter(),
    limit: FOUND,
    peek: true,
  };
  const found = useLoad(
    (signal) => learn.searchReflections(asked, { signal }),
    [JSON.stringify(asked)],
  );
  return (
    <Show of={found} lines={6}>
      {({ results = [] }: { results?: FoundReflectionJson[] }) =>
        results.length === 0 ? (
          <None filtered />
        ) : (
          results.map(
            (one) => one.reflection && <One key={one.reflection.id} of={one.reflection} />,
          )
        )
      }
    </Show>
  );
}

function One({ of }: { of: ReflectionJson }) {
  const outcome = word(of.outcome, "OUTCOME_");
  return (
    <article class="card stack">
      <div>
        <h2 class="title">{of.taskDescription}</h2>
        <span class="badges">
          <Badge tone={TONES[outcome] ?? "plain"}>{outcome}</Badge>
          <Badge>attempt {count(of.attemptNumber)}</Badge>
        </span>
      </div>
      <Points title="What worked" of={of.whatWorked} />
      <Points title="What did not work" of={of.whatDidNotWork} />
      {of.nextStrategy && (
        <div>
          <h3>What to try next</h3>
          <Text value={of.nextStrategy} />
        </div>
      )}
      <Facts
        of={[
          [
            "Session",
            of.sessionId && <Id value={of.sessionId} href={to("sessions", of.sessionId)} />,
          ],
          ["Agent", of.agentId],
          ["Project", of.project],
          ["Labels", of.tags?.join(", ")],
          ["Stored", <Time key="time" value={of.createdAt} />],
        ]}
      />
    </article>
  );
}

function Points({ title, of = [] }: { title: string; of?: readonly string[] | undefined }) {
  if (of.length === 0) return null;
  return (
    <div>
      <h3>{title}</h3>
      <ul class="points">
        {of.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </div>
  );
}

function None({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No reflection is like that.">
        <p>Take a filter away, or ask in other words.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No reflection was stored yet.">
      <p>Agents store one after an attempt, with a client or over MCP:</p>
      <pre>
        <code>mneme reflections --help</code>
      </pre>
    </Empty>
  );
}
