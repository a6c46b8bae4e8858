/** Patterns: what to look for in memories, how often it was used, and how often it was right. */

import type { PatternStatsJson } from "@mneme/client/http";
import { useEffect, useState } from "preact/hooks";
import { usePages } from "../api/load";
import { memories } from "../api/services";
import { Badge, Empty, PageHeader } from "../components/basics";
import { announce } from "../components/live";
import { May } from "../components/may";
import { Pages } from "../components/table";
import { count, num, percent, plural } from "../format";
import type { PageProps } from "../pages";
import { filter, navigate, setQuery, withQuery } from "../router";
import { kindOf, PatternDetail } from "./patterns/detail";
import { PatternDialog } from "./patterns/editor";
import "../styles/remember.css";
import "../styles/patterns.css";

export default function Patterns({ rest: [linked] }: PageProps) {
  const [making, setMaking] = useState(false);
  const [round, setRound] = useState(0);
  const changed = (): void => setRound((before) => before + 1);
  const chosen = filter("pattern");
  useEffect(() => {
    if (linked) navigate(`/patterns?pattern=${encodeURIComponent(linked)}`, { replace: true });
  }, [linked]);
  return (
    <>
      <PageHeader
        title="Patterns"
        about="What to look for in memories: an expression, a meaning, or a structure."
        actions={
          <May scope="write">
            <button type="button" class="primary" onClick={() => setMaking(true)}>
              New pattern
            </button>
          </May>
        }
      />
      <div class={chosen ? "split open" : "split"}>
        <List round={round} />
        {chosen && <PatternDetail key={chosen} name={chosen} onChange={changed} />}
      </div>
      {making && (
        <PatternDialog
          onClose={() => setMaking(false)}
          onSaved={(name) => {
            setMaking(false);
            changed();
            announce("Pattern stored");
            setQuery({ pattern: name });
          }}
        />
      )}
    </>
  );
}

function List({ round }: { round: number }) {
  const pages = usePages<PatternStatsJson>(
    async (pageToken, signal) => {
      const page = await memories.listPatternStats({ pageSize: 100, pageToken }, { signal });
      return { items: page.stats ?? [], next: page.nextPageToken };
    },
    [round],
  );
  return (
    <div class="card list">
      <Pages of={pages} names={["pattern", "patterns"]} empty={<None />}>
        {(items) => (
          <ul class="rows" aria-label="Patterns">
            {items.map((stats) => (
              <Row key={stats.pattern?.id} stats={stats} />
            ))}
          </ul>
        )}
      </Pages>
    </div>
  );
}

function Row({ stats }: { stats: PatternStatsJson }) {
  const { name = "", description } = stats.pattern ?? {};
  const uses = num(stats.uses) === 0 ? "not used yet" : `used ${plural(stats.uses, "time")}`;
  return (
    <li>
      <a
        class="row"
        href={withQuery({ pattern: name })}
        aria-current={filter("pattern") === name ? "true" : undefined}
      >
        <span class="row-title">{name}</span>
        <Rate of={stats} />
        <span class="row-text">
          {[kindOf(stats.pattern ?? {}), uses, description].filter(Boolean).join(" · ")}
        </span>
      </a>
    </li>
  );
}

/** How often what it matched was said to be right. */
function Rate({ of }: { of: PatternStatsJson }) {
  const judged = num(of.rightCount) + num(of.wrongCount);
  if (judged === 0) return <Badge>not judged yet</Badge>;
  return (
    <Badge tone={num(of.successRate) >= 0.5 ? "good" : "warn"}>
      {percent(of.successRate, 0)} right of {count(judged)}
    </Badge>
  );
}

function None() {
  return (
    <Empty title="There is no pattern yet.">
      <p>Write the first one with “New pattern”, such as an expression that finds order numbers.</p>
    </Empty>
  );
}
