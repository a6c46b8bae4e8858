/** Alerts: the rules that watch what is recorded, one of them beside the list; and their history. */

import type { AlertRuleJson } from "@mneme/client/http";
import { useEffect, useState } from "preact/hooks";
import { usePages } from "../api/load";
import { alerts } from "../api/services";
import { Empty, PageHeader } from "../components/basics";
import { ChoiceFilter, Filters } from "../components/filters";
import { announce } from "../components/live";
import { May } from "../components/may";
import { Pages } from "../components/table";
import { num } from "../format";
import type { PageProps } from "../pages";
import { filter, navigate, setQuery, withQuery } from "../router";
import { RuleDetail, StateBadge } from "./alerts/detail";
import { RuleDialog } from "./alerts/editor";
import { History } from "./alerts/history";
import { scopeOf, sentence } from "./alerts/wording";
import "../styles/remember.css";
import "../styles/alerts.css";

const PARTS = [
  ["", "Rules"],
  ["history", "History"],
] as const;
const STATES = [
  ["", "Any"],
  ["triggered", "Triggered"],
  ["ok", "OK, or disabled"],
] as const;

export default function Alerts({ rest: [linked] }: PageProps) {
  const [making, setMaking] = useState(false);
  const [round, setRound] = useState(0);
  const changed = (): void => setRound((before) => before + 1);
  const part = filter("part");
  useEffect(() => {
    if (linked) navigate(`/alerts?rule=${encodeURIComponent(linked)}`, { replace: true });
  }, [linked]);
  return (
    <>
      <PageHeader
        title="Alerts"
        about="Rules that watch what is recorded, and tell somebody."
        actions={
          <May scope="write">
            <button type="button" class="primary" onClick={() => setMaking(true)}>
              New rule
            </button>
          </May>
        }
      />
      <nav class="tabs" aria-label="Parts">
        {PARTS.map(([name, text]) => (
          <a
            key={name}
            href={name ? `/alerts?part=${name}` : "/alerts"}
            aria-current={name === part ? "page" : undefined}
          >
            {text}
          </a>
        ))}
      </nav>
      {part === "history" ? <History /> : <Rules round={round} onChange={changed} />}
      {making && (
        <RuleDialog
          onClose={() => setMaking(false)}
          onSaved={(rule) => {
            setMaking(false);
            changed();
            announce("Rule created");
            setQuery({ part: "", state: "", rule: rule.id });
          }}
        />
      )}
    </>
  );
}

function Rules({ round, onChange }: { round: number; onChange: () => void }) {
  const chosen = filter("rule");
  return (
    <>
      <Filters names={["state"]}>
        <ChoiceFilter name="state" label="State" choices={STATES} />
      </Filters>
      <div class={chosen ? "split open" : "split"}>
        <RuleList round={round} />
        {chosen && <RuleDetail key={chosen} id={chosen} onChange={onChange} />}
      </div>
    </>
  );
}

function RuleList({ round }: { round: number }) {
  const state = filter("state");
  const pages = usePages<AlertRuleJson>(
    async (pageToken, signal) => {
      const asked = {
        ...(state && {
          state: state === "ok" ? ("ALERT_STATE_OK" as const) : ("ALERT_STATE_TRIGGERED" as const),
        }),
        pageSize: 100,
        pageToken,
      };
      const page = await alerts.listAlertRules(asked, { signal });
      return { items: page.rules ?? [], next: page.nextPageToken, total: num(page.totalSize) };
    },
    [state, round],
  );
  return (
    <div class="card list">
      <Pages of={pages} names={["rule", "rules"]} empty={<NoRules filtered={state !== ""} />}>
        {(rules) => (
          <ul class="rows" aria-label="Rules">
            {rules.map((rule) => (
              <li key={rule.id}>
                <a
                  class="row"
                  href={withQuery({ rule: rule.id })}
                  aria-current={filter("rule") === rule.id ? "true" : undefined}
                >
                  <span class="row-title">{rule.name}</span>
                  <StateBadge rule={rule} />
                  <span class="row-text">
                    {sentence(rule)}
                    {rule.scope && ` · ${scopeOf(rule)}`}
                  </span>
                </a>
              </li>
            ))}
          </ul>
        )}
      </Pages>
    </div>
  );
}

function NoRules({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No rule is in this state.">
        <p>Take the filter away to see the others.</p>
      </Empty>
    );
  }
  return (
    <Empty title="There is no rule yet.">
      <p>Write the first one with “New rule”, or on the command line:</p>
      <pre>
        <code>mneme alerts create "Too many errors" error_rate_exceeds --threshold 0.2</code>
      </pre>
    </Empty>
  );
}
