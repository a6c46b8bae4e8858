/** Knowledge: what was noted of commands and situations, found by asking. */

import type { FoundKnowledgeJson, KnowledgeTypeJson } from "@mneme/client/http";
import { useLoad } from "../api/load";
import { learn } from "../api/services";
import { Badge, Empty, Facts, PageHeader, Show, Time, type Tone } from "../components/basics";
import { ChoiceFilter, Filters, TextFilter } from "../components/filters";
import { Text } from "../components/text";
import { count, percent, plural, word } from "../format";
import type { PageProps } from "../pages";
import { filter, narrowing } from "../router";
import "../styles/remember.css";

const NAMES = ["q", "type", "project", "tag"] as const;
const TYPES = [
  ["", "Any"],
  ["error", "Error"],
  ["success", "Success"],
  ["pattern", "Pattern"],
] as const;
const TONES: Readonly<Record<string, Tone>> = { error: "bad", success: "good", pattern: "info" };
const FOUND = 50;
const TOKENS = 100_000;

export default function Knowledge({ rest: [linked] }: PageProps) {
  return (
    <>
      <PageHeader
        title="Knowledge"
        about="What agents noted of commands and situations, and how often it held."
      />
      <Filters names={NAMES}>
        <TextFilter name="q" label="Ask" placeholder="what you are about to do" wide />
        <ChoiceFilter name="type" label="Kind" choices={TYPES} />
        <TextFilter name="project" label="Project" />
        <TextFilter name="tag" label="Label" />
      </Filters>
      {filter("q") ? (
        <Found linked={linked} />
      ) : (
        <Empty title="Ask, and what is known of it comes.">
          <p>
            Say what you are about to do, such as “migrate a large table”. Agents note what they
            learn with <code>mneme log</code>, a client or over MCP.
          </p>
        </Empty>
      )}
    </>
  );
}

/** What is found; of that the linked entry alone, if it is among it. */
function Found({ linked }: { linked: string | undefined }) {
  const type = filter("type").toUpperCase();
  const asked = {
    query: filter("q"),
    filter: {
      ...narrowing({ project: "project" }),
      ...(type && { type: `KNOWLEDGE_TYPE_${type}` as KnowledgeTypeJson }),
      ...(filter("tag") && { tags: [filter("tag")] }),
    },
    limit: FOUND,
    tokenBudget: TOKENS,
  };
  const found = useLoad(
    (signal) => learn.searchKnowledge(asked, { signal }),
    [JSON.stringify(asked)],
  );
  return (
    <Show of={found} lines={6}>
      {({ entries = [] }) => {
        const one = entries.filter(({ entry }) => linked && entry?.id === linked);
        const shown = one.length ? one : entries;
        return entries.length === 0 ? (
          <Empty title="Nothing is known of that.">
            <p>Ask in other words, or take a filter away.</p>
          </Empty>
        ) : (
          <>
            <p class="fine" role="status">
              {plural(shown.length, "entry", "entries")}
              {shown.length < entries.length && (
                <>
                  {" "}
                  of {count(entries.length)} that bear on it.{" "}
                  <a href={`/knowledge?${new URLSearchParams({ q: filter("q") })}`}>Show all</a>
                </>
              )}
            </p>
            {shown.map((found) => (
              <One key={found.entry?.id} of={found} />
            ))}
          </>
        );
      }}
    </Show>
  );
}

function One({ of }: { of: FoundKnowledgeJson }) {
  const { entry = {} } = of;
  const type = word(entry.type, "KNOWLEDGE_TYPE_");
  const rate = entry.successRate;
  return (
    <article class="card stack">
      <div>
        <h2 class="title">{entry.lesson}</h2>
        <Badge tone={TONES[type] ?? "plain"}>{type}</Badge>
      </div>
      <Text value={entry.context ?? ""} />
      {entry.command && <Text value={entry.command} mono />}
      <Facts
        of={[
          [
            "Held",
            rate &&
              `${count(rate.successes)} of ${count(rate.tries)} times, at least ${percent(of.successLowerBound, 0)}`,
          ],
          ["Project", entry.project],
          ["Agent", entry.agentId],
          ["Labels", entry.tags?.join(", ")],
          ["Noted", <Time key="time" value={entry.timestamp} />],
        ]}
      />
    </article>
  );
}
