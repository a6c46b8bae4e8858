/** One rule: what it watches and where it stands; changed in place, tested, tried and deleted. */

import type { AlertDeliveryJson, AlertRuleJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { useLoad } from "../../api/load";
import { alerts } from "../../api/services";
import { Badge, ErrorBox, Facts, Show, Time } from "../../components/basics";
import { Confirm } from "../../components/dialog";
import { announce } from "../../components/live";
import { May } from "../../components/may";
import { Id } from "../../components/text";
import { count, num } from "../../format";
import { setQuery, withQuery } from "../../router";
import { RuleForm } from "./editor";
import { Deliveries, HistoryOf } from "./history";
import { Trial } from "./trial";
import { conditionOf, figure, scopeOf, sentence } from "./wording";

/** The rule beside the list. */
export function RuleDetail({ id, onChange }: { id: string; onChange: () => void }) {
  const loaded = useLoad((signal) => alerts.getAlertRule({ ruleId: id }, { signal }), [id]);
  const [editing, setEditing] = useState(false);
  const [round, setRound] = useState(0);
  const changed = (text: string): void => {
    setEditing(false);
    announce(text);
    loaded.reload();
    setRound(round + 1);
    onChange();
  };
  return (
    <section class="card detail" aria-label="The rule">
      <p class="detail-close">
        <a href={withQuery({ rule: "" })}>Close</a>
      </p>
      <Show of={loaded}>
        {({ rule }) =>
          rule &&
          (editing ? (
            <RuleForm
              rule={rule}
              onCancel={() => setEditing(false)}
              onSaved={() => changed("Rule saved")}
            />
          ) : (
            <div class="stack">
              <Shown
                rule={rule}
                onEdit={() => setEditing(true)}
                onChange={changed}
                onDeleted={() => {
                  announce("Rule deleted");
                  setQuery({ rule: "" });
                  onChange();
                }}
              />
              <section aria-label="The past">
                <h3>Try it on the past</h3>
                <Trial rule={rule} />
              </section>
              <HistoryOf rule={id} round={round} />
            </div>
          ))
        }
      </Show>
    </section>
  );
}

/** Where a rule stands, in a word, and whether it tells nobody that it should. */
export function StateBadge({ rule }: { rule: AlertRuleJson }) {
  return (
    <>
      <WatchBadge rule={rule} />
      {rule.notifyHeldReason && <Badge tone="warn">held back</Badge>}
    </>
  );
}

function WatchBadge({ rule }: { rule: AlertRuleJson }) {
  if (!rule.enabled) return <Badge>disabled</Badge>;
  if (rule.state === "ALERT_STATE_TRIGGERED") return <Badge tone="bad">triggered</Badge>;
  return <Badge tone="good">ok</Badge>;
}

function Shown(props: {
  rule: AlertRuleJson;
  onEdit: () => void;
  onChange: (text: string) => void;
  onDeleted: () => void;
}) {
  const { rule } = props;
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState("");
  const [tested, setTested] = useState<readonly AlertDeliveryJson[]>();
  const [deleting, setDeleting] = useState(false);
  const ruleId = rule.id ?? "";
  const run = async (name: string, doing: () => Promise<void>): Promise<void> => {
    setBusy(name);
    setError(undefined);
    try {
      await doing();
    } catch (failed) {
      setError(asApiError(failed));
    }
    setBusy("");
  };
  const turn = (): Promise<void> =>
    run("turn", async () => {
      const asked = { rule: { id: ruleId, enabled: !rule.enabled }, updateMask: "enabled" };
      await alerts.updateAlertRule(asked);
      props.onChange(rule.enabled ? "Rule disabled" : "Rule enabled");
    });
  const test = (): Promise<void> =>
    run("test", async () => {
      setTested(undefined);
      const { deliveries = [] } = await alerts.testAlertRule({ ruleId });
      const arrived = deliveries.filter((one) => one.state === "DELIVERY_STATE_DELIVERED").length;
      setTested(deliveries);
      announce(`Test: ${arrived} of ${deliveries.length} delivered`);
    });
  const tellAgain = (): Promise<void> =>
    run("tell", async () => {
      const { notifyChannels = [] } = rule;
      const asked = { rule: { id: ruleId, notifyChannels }, updateMask: "notifyChannels" };
      await alerts.updateAlertRule(asked);
      props.onChange("Its channels are told again");
    });
  const silent = !rule.notifyChannels?.length;
  return (
    <>
      <div>
        <h2 class="title">{rule.name}</h2>
        <StateBadge rule={rule} />
      </div>
      <p class="rule-sentence">{sentence(rule)}</p>
      {rule.notifyHeldReason && (
        <section aria-label="Held back">
          <p class="delivery-error">Alerts are {rule.notifyHeldReason}.</p>
          <May scope="write">
            <p>Look at whom it tells, below, before you set it again.</p>
            <button type="button" onClick={() => void tellAgain()} disabled={busy !== ""}>
              Set the same channels with this key
            </button>
          </May>
        </section>
      )}
      {error && <ErrorBox error={error} />}
      <May scope="write">
        <div class="actions">
          <button type="button" onClick={props.onEdit}>
            Edit
          </button>
          <button type="button" onClick={() => void turn()} disabled={busy !== ""}>
            {rule.enabled ? "Disable" : "Enable"}
          </button>
          <button
            type="button"
            onClick={() => void test()}
            disabled={busy !== "" || silent}
            title={
              silent ? "It tells nobody: edit it to name a channel" : "To each of its channels"
            }
          >
            {busy === "test" ? "Sending…" : "Send a test"}
          </button>
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            Delete
          </button>
        </div>
      </May>
      {tested && (
        <section aria-label="The test">
          <h3>What became of the test</h3>
          <Deliveries of={tested} />
        </section>
      )}
      <Facts of={factsOf(rule)} />
      {deleting && (
        <Confirm
          title={`Delete the rule ${rule.name}?`}
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await alerts.deleteAlertRule({ ruleId });
            props.onDeleted();
          }}
        >
          <p>It watches no more, and it cannot be brought back. Its history stays.</p>
        </Confirm>
      )}
    </>
  );
}

function factsOf(rule: AlertRuleJson) {
  const { now, threshold } = conditionOf(rule.condition);
  const resolve = rule.resolveThreshold;
  return [
    ["Looks at", now ? undefined : scopeOf(rule)],
    ["Resolves at", threshold && figure(rule.condition, num(resolve ?? rule.threshold))],
    ["Events at least", threshold && num(rule.minEvents) > 1 ? count(rule.minEvents) : undefined],
    [
      "Tells",
      rule.notifyChannels?.length ? (
        <ul key="channels">
          {rule.notifyChannels.map((channel) => (
            <li key={channel}>{channel}</li>
          ))}
        </ul>
      ) : (
        "nobody: its history alone has it"
      ),
    ],
    ["Set by the key", rule.notifyKeyId && <Id key="key" value={rule.notifyKeyId} />],
    [
      "Triggered last",
      rule.lastTriggeredAt ? <Time key="last" value={rule.lastTriggeredAt} /> : "never",
    ],
    ["Changed", <Time key="changed" value={rule.updatedAt} exact />],
    ["Id", <Id key="id" value={rule.id ?? ""} />],
  ] as const;
}
