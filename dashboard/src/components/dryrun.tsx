/** What would be forgotten, shown before anything is: every page that forgets begins with it. */

import type { ForgetReceiptJson, ForgetRequestJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api/errors";
import { resultOf } from "../api/operations";
import { admin } from "../api/services";
import { count, num, plural } from "../format";
import { Facts } from "./basics";

/** A dry run: what it found, once it was asked for. */
export interface DryRun {
  readonly plan: ForgetReceiptJson | undefined;
  readonly busy: boolean;
  readonly error: ApiError | undefined;
  /** Ask what would go. */
  readonly look: () => Promise<void>;
  /** Take back what was found: it is for what it was made for, and no more. */
  readonly drop: () => void;
}

/** Asks what a request would forget, and forgets nothing. */
export function useDryRun(request: ForgetRequestJson): DryRun {
  const [plan, setPlan] = useState<ForgetReceiptJson>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const look = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    setPlan(undefined);
    try {
      setPlan(await resultOf(await admin.forget({ ...request, dryRun: true })));
    } catch (failed) {
      setError(asApiError(failed));
    }
    setBusy(false);
  };
  return { plan, busy, error, look, drop: () => setPlan(undefined) };
}

/** What would go, and the button that goes on from there. */
export function Plan(props: { plan: ForgetReceiptJson; of: string; onForget: () => void }) {
  const { backups = [] } = props.plan;
  if (counted(props.plan).length === 0) {
    return (
      <p class="muted" role="status">
        Nothing is kept of {props.of}.
      </p>
    );
  }
  return (
    <div class="stack">
      <p role="status">This would be forgotten. Nothing has been yet.</p>
      <Counts receipt={props.plan} />
      {backups.length > 0 && (
        <p class="fine">Backups that hold some of it, and stay: {backups.join(", ")}</p>
      )}
      <div class="actions">
        <button type="button" class="danger" onClick={props.onForget}>
          Forget…
        </button>
      </div>
    </div>
  );
}

/** How many of each kind, in words. */
export function Counts({ receipt }: { receipt: ForgetReceiptJson }) {
  const { policies = [] } = receipt;
  return (
    <>
      <Facts of={counted(receipt)} />
      {policies.length > 0 && (
        <p class="fine">
          {plural(policies.length, "learning session")} had learned of it and will learn again from
          what is left.
        </p>
      )}
    </>
  );
}

/** The kinds of which there is something, with how many. */
export function counted(receipt: ForgetReceiptJson): readonly (readonly [string, string])[] {
  return (receipt.counts ?? [])
    .filter(({ count: found }) => num(found) > 0)
    .map(({ kind = "", count: found }) => [kind.replaceAll("_", " "), count(found)] as const);
}
