/** One pattern: what it looks for, what it finds, and how often that was right. */

import type { PatternJson, PatternStatsJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { useLoad } from "../../api/load";
import { memories } from "../../api/services";
import { Facts, Show, Time } from "../../components/basics";
import { Confirm } from "../../components/dialog";
import { announce } from "../../components/live";
import { May } from "../../components/may";
import { Id, Json, Text } from "../../components/text";
import { count, duration, num, percent, score } from "../../format";
import { setQuery, withQuery } from "../../router";
import { Finding } from "./finding";

/** The pattern beside the list. */
export function PatternDetail({ name, onChange }: { name: string; onChange: () => void }) {
  const loaded = useLoad((signal) => memories.listPatternStats({ name }, { signal }), [name]);
  const [deleting, setDeleting] = useState(false);
  const again = (): void => {
    loaded.reload();
    onChange();
  };
  return (
    <section class="card detail" aria-label="The pattern">
      <p class="detail-close">
        <a href={withQuery({ pattern: "" })}>Close</a>
      </p>
      <Show of={loaded}>
        {({ stats: [stats = {}] = [] }) => (
          <div class="stack">
            <div>
              <h2 class="title">{name}</h2>
              {stats.pattern?.description && <Text value={stats.pattern.description} />}
            </div>
            <Sought pattern={stats.pattern ?? {}} />
            <Finding pattern={stats.pattern ?? {}} onUse={again} />
            <Facts of={factsOf(stats)} />
            <May scope="write">
              <div class="actions">
                <button type="button" class="danger" onClick={() => setDeleting(true)}>
                  Delete
                </button>
              </div>
            </May>
          </div>
        )}
      </Show>
      {deleting && (
        <Confirm
          title={`Delete the pattern ${name}?`}
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await memories.deletePattern({ name });
            announce("Pattern deleted");
            setQuery({ pattern: "" });
            onChange();
          }}
        >
          <p>What was said of its matches goes, too. The memories stay.</p>
        </Confirm>
      )}
    </section>
  );
}

/** What kind of pattern it is. */
export function kindOf(pattern: PatternJson): string {
  if (pattern.regex) return "expression";
  return pattern.semantic ? "meaning" : "structure";
}

function Sought({ pattern }: { pattern: PatternJson }) {
  const { regex, semantic, structural } = pattern;
  if (regex) {
    return (
      <div>
        <h3>Expression</h3>
        <Text value={regex.expression ?? ""} mono />
      </div>
    );
  }
  if (semantic) {
    return (
      <div>
        <h3>Meaning</h3>
        <Text value={semantic.text ?? ""} />
        <p class="fine">Similarity of {score(semantic.threshold ?? 0.5)} at least</p>
      </div>
    );
  }
  const text = structural?.target === "STRUCTURE_OF_TEXT";
  return (
    <div>
      <h3>Structure of {text ? "texts that are JSON" : "metadata"}</h3>
      <Json value={structural?.schema ?? {}} />
    </div>
  );
}

function factsOf(stats: PatternStatsJson) {
  const judged = num(stats.rightCount) + num(stats.wrongCount);
  return [
    ["Searches", count(stats.uses)],
    ["Memories matched", count(stats.matchCount)],
    ["Takes", stats.averageMs === undefined ? undefined : duration(stats.averageMs)],
    ["Last used", stats.lastUsedAt && <Time key="used" value={stats.lastUsedAt} />],
    [
      "Right",
      judged > 0
        ? `${count(stats.rightCount)} of ${count(judged)}: ${percent(stats.successRate, 0)}`
        : "not judged yet",
    ],
    [
      "Expected",
      judged > 0 ? `${percent(stats.lowerBound, 0)} to ${percent(stats.upperBound, 0)}` : undefined,
    ],
    ["Stored", <Time key="stored" value={stats.pattern?.createdAt} exact />],
    ["Id", <Id key="id" value={stats.pattern?.id ?? ""} />],
  ] as const;
}
