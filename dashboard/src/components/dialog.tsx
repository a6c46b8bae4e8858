/** Dialogs. The browser's own keep the focus inside, and close with Escape. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api/errors";
import { ErrorBox } from "./basics";

/** A dialog that is open while it is there. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={props.wide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
    >
      <div class="dialog-head">
        <h2 id={id}>{props.title}</h2>
        <button type="button" class="quiet icon" aria-label="Close" onClick={props.onClose}>
          ✕
        </button>
      </div>
      {props.children}
    </dialog>
  );
}

/**
 * Asks before something is done that cannot be undone. With `typed`, the button waits until that
 * word was typed.
 */
export function Confirm(props: {
  title: string;
  action: string;
  typed?: string;
  onConfirm: () => PromiseLike<unknown>;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const id = useId();
  const [word, setWord] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const confirm = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await props.onConfirm();
      props.onClose();
    } catch (failed) {
      setError(asApiError(failed));
      setBusy(false);
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form onSubmit={confirm} class="stack">
        <div>{props.children}</div>
        {props.typed !== undefined && (
          <div class="field">
            <label for={id}>
              Type <code>{props.typed}</code> to go on
            </label>
            <input
              id={id}
              value={word}
              autoComplete="off"
              onInput={(event) => setWord(event.currentTarget.value)}
            />
          </div>
        )}
        {error && <ErrorBox error={error} />}
        <div class="buttons">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class="danger"
            disabled={busy || (props.typed !== undefined && word !== props.typed)}
          >
            {busy ? "Working…" : props.action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
