/** Episodes: whole attempts at a task, with what came of them. */

import type { EpisodeFilterJson, EpisodeJson } from "@mneme/client/http";
import { useEffect } from "preact/hooks";
import { useLoad, usePages } from "../api/load";
import { skills } from "../api/services";
import { Badge, Empty, Facts, PageHeader, Section, Show, Time } from "../components/basics";
import {
  ChoiceFilter,
  Filters,
  TextFilter,
  TIME_FILTERS,
  TimeFilter,
  timeKey,
  timeRange,
} from "../components/filters";
import { Pages } from "../components/table";
import { Id, Json, Text } from "../components/text";
import { count, duration, num, score } from "../format";
import type { PageProps } from "../pages";
import { filter, narrowing, navigate, to, withQuery } from "../router";
import "../styles/remember.css";

const NAMES = ["q", "outcome", "agent", "user", "project", "tag", ...TIME_FILTERS] as const;
const OUTCOMES = [
  ["", "Any"],
  ["success", "Success"],
  ["failure", "Failure"],
] as const;
const FOUND = 50;

export default function Episodes({ rest: [linked] }: PageProps) {
  useEffect(() => {
    if (linked) navigate(`/episodes?episode=${encodeURIComponent(linked)}`, { replace: true });
  }, [linked]);
  return (
    <>
      <PageHeader
        title="Episodes"
        about="Attempts at a task: what was tried, and what came of it."
      />
      <Filters names={NAMES}>
        <TextFilter name="q" label="Search" placeholder="a task, in your words" wide />
        <ChoiceFilter name="outcome" label="Outcome" choices={OUTCOMES} />
        <TextFilter name="agent" label="Agent" />
        <TextFilter name="user" label="User" />
        <TextFilter name="project" label="Project" />
        <TextFilter name="tag" label="Label" />
        <TimeFilter />
      </Filters>
      <div class={filter("episode") ? "split open" : "split"}>
        <div class="list">{filter("q") ? <Found /> : <List />}</div>
        {filter("episode") && <Detail key={filter("episode")} id={filter("episode")} />}
      </div>
    </>
  );
}

function episodeFilter(): EpisodeFilterJson {
  return {
    ...narrowing({ agentId: "agent", userId: "user", project: "project" }),
    ...(filter("tag") && { tags: [filter("tag")] }),
    onlySuccesses: filter("outcome") === "success",
    onlyFailures: filter("outcome") === "failure",
    ...timeRange(),
  };
}

function List() {
  const inputs = [...NAMES.slice(1, 6).map(filter), timeKey()];
  const pages = usePages<EpisodeJson>(async (pageToken, signal) => {
    const asked = { filter: episodeFilter(), pageSize: 50, pageToken };
    const page = await skills.listEpisodes(asked, { signal });
    return { items: page.episodes ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, inputs);
  const filtered = inputs.some((value) => value.replaceAll("|", ""));
  return (
    <div class="card">
      <Pages of={pages} names={["episode", "episodes"]} empty={<None filtered={filtered} />}>
        {(items) => <Rows of={items} />}
      </Pages>
    </div>
  );
}

function Found() {
  const key = [...NAMES.slice(0, 6).map(filter), timeKey()];
  const found = useLoad(
    (signal) =>
      skills.searchEpisodes(
        { task: filter("q"), filter: episodeFilter(), limit: FOUND },
        { signal },
      ),
    key,
  );
  return (
    <Show of={found} lines={6}>
      {({ results = [], critiques }) => (
        <>
          {critiques?.text && (
            <Section title="What their critiques say together">
              <Text value={critiques.text} />
            </Section>
          )}
          <div class="card">
            {results.length ? (
              <Rows of={results.flatMap((one) => one.episode ?? [])} />
            ) : (
              <None filtered />
            )}
          </div>
        </>
      )}
    </Show>
  );
}

function Rows({ of }: { of: readonly EpisodeJson[] }) {
  return (
    <ul class="rows">
      {of.map((episode) => (
        <li key={episode.id}>
          <a
            class="row"
            href={withQuery({ episode: episode.id })}
            aria-current={filter("episode") === episode.id ? "true" : undefined}
          >
            <span class="row-title">{episode.task}</span>
            <Success of={episode} />
            <span class="row-text">{episode.critique || episode.output}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function Success({ of }: { of: EpisodeJson }) {
  return (
    <Badge tone={of.success ? "good" : "bad"}>
      {of.success ? "succeeded" : "failed"}, {score(of.reward)}
    </Badge>
  );
}

function Detail({ id }: { id: string }) {
  const loaded = useLoad((signal) => skills.getEpisode({ episodeId: id }, { signal }), [id]);
  return (
    <section class="card detail" aria-label="The episode">
      <p class="detail-close">
        <a href={withQuery({ episode: "" })}>Close</a>
      </p>
      <Show of={loaded}>
        {({ episode = {} }) => (
          <div class="stack">
            <div>
              <h2 class="title">{episode.task}</h2>
              <Success of={episode} />
            </div>
            <Part title="Input" text={episode.input} />
            <Part title="Output" text={episode.output} />
            <Part title="Critique" text={episode.critique} />
            <Facts
              of={[
                [
                  "Session",
                  episode.sessionId && (
                    <Id value={episode.sessionId} href={to("sessions", episode.sessionId)} />
                  ),
                ],
                ["Agent", episode.agentId],
                ["User", episode.userId],
                ["Project", episode.project],
                ["Tools", episode.tools?.join(", ")],
                ["Labels", episode.tags?.join(", ")],
                ["Took", episode.latencyMs && duration(episode.latencyMs)],
                ["Tokens", episode.tokensUsed && count(episode.tokensUsed)],
                ["Happened", <Time key="time" value={episode.occurredAt} exact />],
                ["Id", <Id key="id" value={episode.id ?? ""} />],
              ]}
            />
            {episode.metadata && Object.keys(episode.metadata).length > 0 && (
              <div>
                <h3>Metadata</h3>
                <Json value={episode.metadata} />
              </div>
            )}
          </div>
        )}
      </Show>
    </section>
  );
}

function Part({ title, text }: { title: string; text: string | undefined }) {
  if (!text) return null;
  return (
    <div>
      <h3>{title}</h3>
      <Text value={text} />
    </div>
  );
}

function None({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No episode is like that.">
        <p>Take a filter away, or ask in other words.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No episode was stored yet.">
      <p>From a session's id alone the rest is filled in:</p>
      <pre>
        <code>mneme episodes --help</code>
      </pre>
    </Empty>
  );
}
