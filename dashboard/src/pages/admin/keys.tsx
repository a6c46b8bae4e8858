/** Keys: made with their secret shown once, and revoked. */

import type { ApiKeyJson, KeyScopeJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { ApiError, asApiError } from "../../api/errors";
import { usePages } from "../../api/load";
import { admin } from "../../api/services";
import { Badge, Empty, ErrorBox, Section, Time } from "../../components/basics";
import { Confirm, Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { Filters, TextFilter, Toggle } from "../../components/filters";
import { announce } from "../../components/live";
import { Pages, Table } from "../../components/table";
import { count, word } from "../../format";
import { filter } from "../../router";

const SCOPES = ["read", "write", "learn", "admin"] as const;
// Nothing is any number of calls; what is no number must not be.
const LIMIT = /^([1-9][0-9]*)?$/;

/** The keys of a tenant, or of all. */
export function Keys() {
  const [round, setRound] = useState(0);
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<ApiKeyJson>();
  const again = (): void => setRound((before) => before + 1);
  const pages = usePages<ApiKeyJson>(
    async (pageToken, signal) => {
      const asked = {
        tenantId: filter("tenant"),
        includeRevoked: filter("revoked") === "1",
        pageSize: 100,
        pageToken,
      };
      const page = await admin.listApiKeys(asked, { signal });
      return { items: page.apiKeys ?? [], next: page.nextPageToken };
    },
    [filter("tenant"), filter("revoked"), round],
  );
  return (
    <Section
      title="Keys"
      about="A key opens one tenant, for what its scopes allow."
      actions={
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          New key
        </button>
      }
    >
      <Filters names={["tenant", "revoked"]}>
        <TextFilter name="tenant" label="Tenant" />
        <Toggle name="revoked" label="Revoked, too" />
      </Filters>
      <Pages of={pages} names={["key", "keys"]} empty={<Empty title="There is no such key." />}>
        {(keys) => <KeyTable keys={keys} onRevoke={setRevoking} />}
      </Pages>
      {making && <KeyDialog onClose={() => setMaking(false)} onMade={again} />}
      {revoking && (
        <Confirm
          title={`Revoke the key ${revoking.name || revoking.prefix}?`}
          action="Revoke"
          onClose={() => setRevoking(undefined)}
          onConfirm={async () => {
            await admin.revokeApiKey({ apiKeyId: revoking.id ?? "" });
            announce("Key revoked");
            again();
          }}
        >
          <p>Whoever calls with it is refused from now on. It cannot be undone.</p>
        </Confirm>
      )}
    </Section>
  );
}

function KeyTable(props: { keys: readonly ApiKeyJson[]; onRevoke: (key: ApiKeyJson) => void }) {
  return (
    <Table
      caption="Keys"
      rows={props.keys}
      keyOf={(row) => row.id ?? ""}
      columns={[
        { name: "Name", cell: (row) => row.name || "–" },
        { name: "Begins with", wide: true, cell: (row) => <code>{row.prefix}…</code> },
        { name: "Tenant", cell: (row) => row.tenantId },
        {
          name: "Scopes",
          wide: true,
          cell: (row) => row.scopes?.map((scope) => word(scope, "KEY_SCOPE_")).join(", "),
        },
        {
          name: "A minute",
          right: true,
          wide: true,
          cell: (row) => (row.rateLimit ? count(row.rateLimit) : "any"),
        },
        { name: "Last used", wide: true, cell: (row) => <Time value={row.lastUsedAt} /> },
        {
          name: "Revoke",
          cell: (row) =>
            row.revokedAt ? (
              <Badge tone="bad">revoked</Badge>
            ) : (
              <button
                type="button"
                class="danger"
                aria-label={`Revoke ${row.name || row.prefix}`}
                onClick={() => props.onRevoke(row)}
              >
                Revoke
              </button>
            ),
        },
      ]}
    />
  );
}

/** Asks what a key may, and shows its secret: this once. */
function KeyDialog(props: { onClose: () => void; onMade: () => void }) {
  const [secret, setSecret] = useState("");
  if (!secret) {
    return (
      <Dialog title="New key" onClose={props.onClose}>
        <KeyForm
          onCancel={props.onClose}
          onMade={(made) => {
            setSecret(made);
            props.onMade();
          }}
        />
      </Dialog>
    );
  }
  return (
    <Dialog title="The new key" onClose={props.onClose}>
      <Secret value={secret} onClose={props.onClose} />
    </Dialog>
  );
}

function KeyForm(props: { onCancel: () => void; onMade: (secret: string) => void }) {
  const [tenant, setTenant] = useState(filter("tenant") || "default");
  const [name, setName] = useState("");
  const [rate, setRate] = useState("");
  const [scopes, setScopes] = useState<readonly string[]>(["read", "write"]);
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const make = async (event: Event): Promise<void> => {
    event.preventDefault();
    // A second key of an impatient click would have a secret that nobody was shown.
    if (busy) return;
    setError(undefined);
    if (!LIMIT.test(rate.trim())) {
      setError(new ApiError("invalid_argument", "Calls a minute are a whole number, such as 600."));
      return;
    }
    setBusy(true);
    try {
      const asked = {
        tenantId: tenant,
        name,
        scopes: scopes.map((scope) => `KEY_SCOPE_${scope.toUpperCase()}` as KeyScopeJson),
        rateLimit: Number(rate),
      };
      props.onMade((await admin.createApiKey(asked)).secret ?? "");
    } catch (failed) {
      setError(asApiError(failed));
      setBusy(false);
    }
  };
  const turn = (scope: string): void =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);
  return (
    <form class="stack" onSubmit={make}>
      <Field label="Tenant" value={tenant} onInput={setTenant} required />
      <Field label="Name" value={name} onInput={setName} required placeholder="who has it" />
      <fieldset class="choices">
        <legend class="field-label">What it may</legend>
        {SCOPES.map((scope) => (
          <label key={scope} class="toggle">
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => turn(scope)} />
            {scope}
          </label>
        ))}
      </fieldset>
      <Field label="Calls a minute, at most" value={rate} onInput={setRate} placeholder="any" />
      {error && <ErrorBox error={error} />}
      <div class="buttons">
        <button type="button" onClick={props.onCancel}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={busy || scopes.length === 0}>
          Create
        </button>
      </div>
    </form>
  );
}

function Secret({ value, onClose }: { value: string; onClose: () => void }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(value);
    setCopied(true);
    announce("Copied");
  };
  return (
    <div class="stack">
      <p>
        <strong>This is shown only this once.</strong> Put it where secrets are kept; the server
        does not know it any more.
      </p>
      <pre class="snippet secret">
        <code>{value}</code>
      </pre>
      <div class="buttons">
        {navigator.clipboard && (
          <button type="button" onClick={() => void copy()}>
            {copied ? "Copied" : "Copy"}
          </button>
        )}
        <button type="button" class="primary" onClick={onClose}>
          I have it
        </button>
      </div>
    </div>
  );
}
