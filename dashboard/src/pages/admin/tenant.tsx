/** Makes tenants. */

import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { admin } from "../../api/services";
import { ErrorBox } from "../../components/basics";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";

/** Asks for a new tenant. */
export function TenantDialog(props: { onClose: () => void; onMade: (id: string) => void }) {
  const [id, setId] = useState("");
  const [name, setName] = useState("");
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const make = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await admin.createTenant({ tenantId: id, displayName: name });
      props.onMade(id);
    } catch (failed) {
      setError(asApiError(failed));
      setBusy(false);
    }
  };
  return (
    <Dialog title="New tenant" onClose={props.onClose}>
      <form class="stack" onSubmit={make}>
        <Field label="Id" value={id} onInput={setId} required max={63} placeholder="acme" />
        <Field label="Name" value={name} onInput={setName} />
        <p class="fine">An id has small letters, digits, - and _, and stays as it is.</p>
        {error && <ErrorBox error={error} />}
        <div class="buttons">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy || !id}>
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
}
