/** Forgetting for good: first what would go, then, after a typed word, the receipt. */

import type { ForgetReceiptJson, ForgetRequestJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { resultOf } from "../../api/operations";
import { admin } from "../../api/services";
import { Badge, ErrorBox, Facts, Section, Time } from "../../components/basics";
import { Confirm } from "../../components/dialog";
import { Counts, counted, Plan, useDryRun } from "../../components/dryrun";
import { announce } from "../../components/live";
import { May } from "../../components/may";
import { Id } from "../../components/text";
import { plural } from "../../format";

/** What is to be forgotten: of a user or of an agent. */
export interface Whose {
  readonly kind: "user" | "agent";
  readonly id: string;
}

/** The dry run, the question, and the receipt. */
export function Forget({ whose, onForgotten }: { whose: Whose; onForgotten: () => void }) {
  const [receipt, setReceipt] = useState<ForgetReceiptJson>();
  const [asking, setAsking] = useState(false);
  const request: ForgetRequestJson =
    whose.kind === "user" ? { userId: whose.id } : { agentId: whose.id };
  const { plan, busy, error, look, drop } = useDryRun(request);
  const forget = async (): Promise<void> => {
    setReceipt(await resultOf(await admin.forget(request)));
    drop();
    announce(`Forgotten: ${whose.id}`);
    onForgotten();
  };
  return (
    <Section
      title={`Forget this ${whose.kind}`}
      about="Erased from the files, the indexes and the caches. The record still verifies; it shows the places as forgotten."
    >
      {error && <ErrorBox error={error} retry={look} />}
      {receipt ? (
        <Receipt receipt={receipt} />
      ) : plan ? (
        <Plan plan={plan} of={`this ${whose.kind}`} onForget={() => setAsking(true)} />
      ) : (
        <May scope="admin">
          <button type="button" onClick={look} disabled={busy}>
            {busy ? "Looking…" : "Show what would be forgotten"}
          </button>
        </May>
      )}
      {asking && (
        <Confirm
          title={`Forget ${whose.id}?`}
          action="Forget for good"
          typed={whose.id}
          onConfirm={forget}
          onClose={() => setAsking(false)}
        >
          <p>What is forgotten cannot be brought back, not even from a backup.</p>
          {plan && <Counts receipt={plan} />}
        </Confirm>
      )}
    </Section>
  );
}

function Receipt({ receipt }: { receipt: ForgetReceiptJson }) {
  const { backups = [] } = receipt;
  const file = new Blob([JSON.stringify(receipt, null, 2)], { type: "application/json" });
  return (
    <div class="stack">
      <p>
        <Badge tone="good">Forgotten</Badge> Neither the files nor the server's memory hold it any
        more.
      </p>
      <Facts
        of={[
          ...counted(receipt),
          ["Hidden", <Time key="h" value={receipt.hiddenAt} exact />],
          ["Erased", <Time key="e" value={receipt.erasedAt} exact />],
          ["Receipt", <Id key="r" value={receipt.id ?? ""} />],
          ["Signed", receipt.signature && <Id key="s" value={receipt.signature} />],
        ]}
      />
      {backups.length > 0 && (
        <p class="fine">
          {plural(backups.length, "backup")} made before still hold it, until they are deleted or
          restored: {backups.join(", ")}
        </p>
      )}
      <p>
        <a
          class="button"
          href={URL.createObjectURL(file)}
          download={`forgotten-${receipt.id}.json`}
        >
          Keep the receipt
        </a>
      </p>
    </div>
  );
}
