/** Forgetting: what is to go is counted first; then it goes for good. */

import { useState } from "preact/hooks";
import { admin } from "../../api/services";
import { ErrorBox, Section } from "../../components/basics";
import { Confirm } from "../../components/dialog";
import { Plan, useDryRun } from "../../components/dryrun";
import { Field } from "../../components/field";
import { announce } from "../../components/live";
import { filter, notBlank } from "../../router";
import { Operations } from "./operations";

/** Asks of whom everything is to go; tells what that is; asks again. */
export function Forgetting() {
  const [tenant, setTenant] = useState(filter("tenant") || "default");
  const [user, setUser] = useState(filter("user"));
  const [agent, setAgent] = useState(filter("agent"));
  const [session, setSession] = useState(filter("session"));
  const [asking, setAsking] = useState(false);
  const [round, setRound] = useState(0);
  const target = {
    tenantId: tenant,
    ...notBlank({ userId: user, agentId: agent, sessionId: session }),
  };
  const named = user || agent || session;
  const { plan, busy, error, look, drop } = useDryRun(target);
  // A plan is for what it was made for: whatever is typed then needs another.
  const typed = (set: (value: string) => void) => (value: string) => {
    set(value);
    drop();
  };
  return (
    <>
      <Section
        title="Forget"
        about="Everything of a user, an agent or a session: what was recorded, and what was made of it."
      >
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void look();
          }}
        >
          <div class="pair">
            <Field label="Tenant" value={tenant} onInput={typed(setTenant)} required />
            <Field label="User" value={user} onInput={typed(setUser)} />
            <Field label="Agent" value={agent} onInput={typed(setAgent)} />
            <Field label="Session" value={session} onInput={typed(setSession)} />
          </div>
          {error && <ErrorBox error={error} />}
          <div class="actions">
            <button type="submit" class="primary" disabled={busy || !named}>
              {busy ? "Looking…" : "Show what would be forgotten"}
            </button>
          </div>
        </form>
        {plan && <Plan plan={plan} of={named} onForget={() => setAsking(true)} />}
      </Section>
      <Operations key={round} kind="forget" />
      {asking && (
        <Confirm
          title={`Forget ${named}?`}
          action="Forget for good"
          typed={named}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            await admin.forget(target);
            announce("Forgetting began");
            drop();
            setRound((before) => before + 1);
          }}
        >
          <p>It is hidden at once, then erased from every file. Nothing brings it back.</p>
        </Confirm>
      )}
    </>
  );
}
