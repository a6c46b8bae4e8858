/** Backups: made, and put back. */

import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { admin } from "../../api/services";
import { ErrorBox, Section } from "../../components/basics";
import { Confirm } from "../../components/dialog";
import { Field } from "../../components/field";
import { announce } from "../../components/live";
import { filter, setQuery } from "../../router";
import { Operations } from "./operations";

/** Begins backups and restores; below, those that ran. */
export function Backups() {
  const [tenant, setTenant] = useState(filter("tenant") || "default");
  const [file, setFile] = useState("");
  const [error, setError] = useState<ApiError>();
  const [round, setRound] = useState(0);
  const [restoring, setRestoring] = useState(false);
  const begun = (text: string): void => {
    announce(text);
    setQuery({ tenant });
    setRound((before) => before + 1);
  };
  const backup = async (): Promise<void> => {
    setError(undefined);
    try {
      await admin.backup({ tenantId: tenant });
      begun("The backup began");
    } catch (failed) {
      setError(asApiError(failed));
    }
  };
  return (
    <>
      <div class="grid">
        <Section
          title="Back up"
          about="A file on the server's machine, checked when it is written."
        >
          <div class="stack">
            <Field label="Tenant" value={tenant} onInput={setTenant} required />
            {error && <ErrorBox error={error} />}
            <div class="actions">
              <button
                type="button"
                class="primary"
                disabled={!tenant}
                onClick={() => void backup()}
              >
                Back up now
              </button>
            </div>
          </div>
        </Section>
        <Section title="Restore" about="What the tenant has now is kept as a backup of its own.">
          <div class="stack">
            <Field
              label="File, as it is called in the tenant's folder of backups"
              value={file}
              onInput={setFile}
            />
            <div class="actions">
              <button
                type="button"
                class="danger"
                disabled={!file || !tenant}
                onClick={() => setRestoring(true)}
              >
                Restore…
              </button>
            </div>
          </div>
        </Section>
      </div>
      <Operations key={round} />
      {restoring && (
        <Confirm
          title={`Restore ${tenant}?`}
          action="Restore"
          typed={tenant}
          onClose={() => setRestoring(false)}
          onConfirm={async () => {
            await admin.restore({ tenantId: tenant, backup: file });
            begun("The restore began");
          }}
        >
          <p>
            All that {tenant} holds becomes what it was in <code>{file}</code>.
          </p>
        </Confirm>
      )}
    </>
  );
}
