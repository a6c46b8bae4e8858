/** A field that is typed into, in forms. */

import { useId } from "preact/hooks";

/** A field with its label; of several lines with `rows`. */
export function Field(props: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  required?: boolean;
  rows?: number;
  max?: number;
  placeholder?: string;
}) {
  const id = useId();
  const common = {
    id,
    value: props.value,
    required: props.required ?? false,
    placeholder: props.placeholder ?? "",
  };
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.rows ? (
        <textarea
          {...common}
          rows={props.rows}
          onInput={(event) => props.onInput(event.currentTarget.value)}
        />
      ) : (
        <input
          {...common}
          autoComplete="off"
          maxLength={props.max ?? 200}
          onInput={(event) => props.onInput(event.currentTarget.value)}
        />
      )}
    </div>
  );
}
