/** Tables and lists that page. */

import type { ComponentChild } from "preact";
import type { Paged } from "../api/load";
import { count } from "../format";
import { ErrorBox, Loading } from "./basics";

/** A column. */
export interface Column<T> {
  readonly name: string;
  readonly cell: (row: T) => ComponentChild;
  /** Numbers stand at the right. */
  readonly right?: boolean;
  /** Left out where the screen is narrow. */
  readonly wide?: boolean;
}

/** Rows as a table. On a phone each row becomes a card. */
export function Table<T>(props: {
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard.
    <section class="scroll" tabIndex={0} aria-label={props.caption}>
      <table>
        <caption class="hidden">{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th key={column.name} scope="col" class={classOf(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.keyOf(row)}>
              {props.columns.map((column) => (
                <td key={column.name} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function classOf(column: { right?: boolean; wide?: boolean }): string {
  return `${column.right ? "right" : ""} ${column.wide ? "wide" : ""}`.trim();
}

/** A list that pages: its items, what stands for none, and the button for more. */
export function Pages<T>(props: {
  of: Paged<T>;
  empty: ComponentChild;
  /** What one of them is called, and many. */
  names: readonly [string, string];
  children: (items: readonly T[]) => ComponentChild;
}) {
  const { items, total, stale, error, loading, more, reload } = props.of;
  // Rows of other filters would be taken for those of these.
  if (!items || stale)
    return error ? <ErrorBox error={error} retry={reload} /> : <Loading lines={6} />;
  if (items.length === 0 && !error) return <>{props.empty}</>;
  const [one, many] = props.names;
  return (
    <div aria-busy={loading}>
      <div class={loading ? "stale" : undefined}>{props.children(items)}</div>
      {error && <ErrorBox error={error} retry={more} />}
      <p class="paging">
        <span role="status">
          {count(items.length)}
          {total !== undefined && total > items.length ? ` of ${count(total)}` : ""}{" "}
          {(total ?? items.length) === 1 ? one : many}
          {more && total === undefined ? " so far" : ""}
        </span>
        {more && (
          <button type="button" onClick={more} disabled={loading}>
            {loading ? "Loading…" : "Load more"}
          </button>
        )}
      </p>
    </div>
  );
}
