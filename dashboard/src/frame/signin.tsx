/** Asks for a key when the server wants one. */

import { useId, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api/errors";
import { keepKey, key, signInNeeded, signInWanted } from "../api/key";
import { admin } from "../api/services";
import { ErrorBox } from "../components/basics";
import { Mark } from "./navigation";

/** The form, in place of every page. The key is tried before it is kept. */
export function SignIn() {
  const id = useId();
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  // As it was when the form came: the key that is being tried has not been refused.
  const [had] = useState(key.value !== "");
  const refused = had && !busy && !error;
  const enter = async (event: Event): Promise<void> => {
    event.preventDefault();
    const before = key.value;
    setBusy(true);
    setError(undefined);
    keepKey(typed);
    try {
      await admin.whoAmI({}); // Any key of this server may ask that.
      signedIn();
    } catch (failed) {
      keepKey(before);
      setError(asApiError(failed));
      setBusy(false);
    }
  };
  return (
    <main class="signin">
      <form class="card stack" onSubmit={enter}>
        <Mark />
        <h1>Mneme</h1>
        <p class="about">
          The memory of your agents.{" "}
          {refused ? "The key of this tab is not taken any more." : "Sign in to look into it."}
        </p>
        <div class="field">
          <label for={id}>API key</label>
          <input
            id={id}
            type="password"
            required
            autoComplete="current-password"
            spellcheck={false}
            placeholder="mn_…"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </div>
        {error && <ErrorBox error={error} />}
        <button type="submit" class="primary" disabled={busy || !typed.trim()}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
        {!signInNeeded.value && (
          <button type="button" onClick={signedIn}>
            Go on without a key
          </button>
        )}
        <p class="fine">
          <code>mneme open</code> signs you in by itself. A key is kept for this tab alone, and
          forgotten when it closes.
        </p>
      </form>
    </main>
  );
}

function signedIn(): void {
  signInNeeded.value = false;
  signInWanted.value = false;
}
