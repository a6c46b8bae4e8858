/** Forgetting: what is to go is counted first; then it goes for good. */

import type { ForgetReceiptJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { admin } from "../../api/services";
import { ErrorBox, Section } from "../../components/basics";
import { Confirm } from "../../components/dialog";
import { announce } from "../../components/live";
import { Table } from "../../components/table";
import { count, num } from "../../format";
import { filter } from "../../router";
import { Field } from "../lessons/editor";
import { Operations } from "./operations";

/** Asks of whom everything is to go; tells what that is; asks again. */
export function Forgetting() {
  const [tenant, setTenant] = useState(filter("tenant") || "default");
  const [user, setUser] = useState(filter("user"));
  const [agent, setAgent] = useState(filter("agent"));
  const [session, setSession] = useState(filter("session"));
  const [plan, setPlan] = useState<ForgetReceiptJson>();
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const [round, setRound] = useState(0);
  const target = { tenantId: tenant, userId: user, agentId: agent, sessionId: session };
  const named = user || agent || session;
  // A plan is for what it was made for: whatever is typed then needs another.
  const typed = (set: (value: string) => void) => (value: string) => {
    set(value);
    setPlan(undefined);
  };
  const look = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    setPlan(undefined);
    try {
      setPlan((await admin.forget({ ...target, dryRun: true })).receipt ?? {});
    } catch (failed) {
      setError(asApiError(failed));
    }
    setBusy(false);
  };
  return (
    <>
      <Section
        title="Forget"
        about="Everything of a user, an agent or a session: what was recorded, and what was made of it."
      >
        <form class="stack" onSubmit={look}>
          <div class="pair">
            <Field label="Tenant" value={tenant} onInput={typed(setTenant)} required />
            <Field label="User" value={user} onInput={typed(setUser)} />
            <Field label="Agent" value={agent} onInput={typed(setAgent)} />
            <Field label="Session" value={session} onInput={typed(setSession)} />
          </div>
          {error && <ErrorBox error={error} />}
          <div class="actions">
            <button type="submit" class="primary" disabled={busy || !named}>
              {busy ? "Counting…" : "Show what would go"}
            </button>
          </div>
        </form>
        {plan && <Plan of={plan} onForget={() => setAsking(true)} />}
      </Section>
      <Operations key={round} kind="forget" />
      {asking && (
        <Confirm
          title={`Forget ${named}?`}
          action="Forget for good"
          typed={named}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            await admin.startForget(target);
            announce("Forgetting began");
            setPlan(undefined);
            setRound((before) => before + 1);
          }}
        >
          <p>It is hidden at once, then erased from every file. Nothing brings it back.</p>
        </Confirm>
      )}
    </>
  );
}

function Plan({ of, onForget }: { of: ForgetReceiptJson; onForget: () => void }) {
  const counts = (of.counts ?? []).filter((one) => num(one.count) > 0);
  if (counts.length === 0) return <p role="status">There is nothing of it.</p>;
  return (
    <div class="stack" role="status">
      <h3>This would go</h3>
      <Table
        caption="What would go"
        rows={counts}
        keyOf={(row) => row.kind ?? ""}
        columns={[
          { name: "Kind", cell: (row) => row.kind?.replaceAll("_", " ") },
          { name: "How many", right: true, cell: (row) => count(row.count) },
        ]}
      />
      {(of.backups ?? []).length > 0 && (
        <p class="fine">These backups hold some of it, and stay: {of.backups?.join(", ")}</p>
      )}
      <div class="actions">
        <button type="button" class="danger" onClick={onForget}>
          Forget it…
        </button>
      </div>
    </div>
  );
}
