/** Operations: long work, as far as it is. */

import type { OperationJson } from "@mneme/client/http";
import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../../api/errors";
import { usePages } from "../../api/load";
import { operations } from "../../api/services";
import { Badge, Empty, Section, Time, type Tone } from "../../components/basics";
import { Filters, TextFilter } from "../../components/filters";
import { announce } from "../../components/live";
import { Pages, Table } from "../../components/table";
import { Id } from "../../components/text";
import { count, num, percent, word } from "../../format";
import { filter } from "../../router";

const LOOK_MS = 3000;
const TONES: Readonly<Record<string, Tone>> = {
  succeeded: "good",
  failed: "bad",
  running: "info",
  cancelled: "warn",
};

/** What runs and what ran; looked at again while something runs. */
export function Operations({ kind = "" }: { kind?: string }) {
  const [round, setRound] = useState(0);
  const again = (): void => setRound((before) => before + 1);
  const pages = usePages<OperationJson>(
    async (pageToken, signal) => {
      const asked = { tenantId: filter("tenant"), kind, pageSize: 25, pageToken };
      const page = await operations.listOperations(asked, { signal });
      return { items: page.operations ?? [], next: page.nextPageToken };
    },
    [filter("tenant"), kind, round],
  );
  const running = pages.items?.some((one) => !one.done) ?? false;
  useEffect(() => {
    if (!running || pages.loading) return;
    const timer = setTimeout(again, LOOK_MS);
    return () => clearTimeout(timer);
  }, [running, pages.loading]);
  const cancel = async (operation: OperationJson): Promise<void> => {
    const asked = { operationId: operation.id ?? "", tenantId: operation.tenantId ?? "" };
    try {
      await operations.cancelOperation(asked);
      announce("Cancelling");
    } catch (error) {
      announce(asApiError(error).message);
    }
    again();
  };
  return (
    <Section title="Operations" about="Work that takes long goes on by itself, across restarts.">
      <Filters names={["tenant"]}>
        <TextFilter name="tenant" label="Tenant" />
      </Filters>
      <Pages
        of={pages}
        names={["operation", "operations"]}
        empty={<Empty title="Nothing runs, and nothing ran lately." />}
      >
        {(items) => <OperationTable of={items} onCancel={(one) => void cancel(one)} />}
      </Pages>
    </Section>
  );
}

function OperationTable(props: {
  of: readonly OperationJson[];
  onCancel: (operation: OperationJson) => void;
}) {
  return (
    <Table
      caption="Operations"
      rows={props.of}
      keyOf={(row) => row.id ?? ""}
      columns={[
        { name: "What", cell: (row) => row.kind?.replaceAll("_", " ") },
        { name: "Tenant", cell: (row) => row.tenantId },
        { name: "State", cell: (row) => <State of={row} /> },
        { name: "Began", wide: true, cell: (row) => <Time value={row.createdAt} /> },
        { name: "Ended", wide: true, cell: (row) => <Time value={row.endedAt} /> },
        { name: "Id", wide: true, cell: (row) => <Id value={row.id ?? ""} /> },
        {
          name: "Cancel",
          cell: (row) =>
            row.cancellable && !row.done ? (
              <button
                type="button"
                aria-label={`Cancel ${row.kind} of ${row.tenantId}`}
                onClick={() => props.onCancel(row)}
              >
                Cancel
              </button>
            ) : (
              "–"
            ),
        },
      ]}
    />
  );
}

function State({ of }: { of: OperationJson }) {
  const state = word(of.state, "OPERATION_STATE_");
  const { progress } = of;
  const total = num(progress?.total);
  return (
    <>
      <Badge tone={TONES[state] ?? "plain"}>{state}</Badge>{" "}
      {!of.done && progress && (
        <span class="fine">
          {progress.stage} {total ? percent(num(progress.done) / total, 0) : count(progress.done)}
        </span>
      )}
      {of.error?.message && <p class="fine">{of.error.message}</p>}
      {backupOf(of) && (
        <p class="fine">
          written to <Id value={backupOf(of)} />
        </p>
      )}
    </>
  );
}

/** The file that a backup was written to, as a restore asks for it. */
function backupOf({ response }: OperationJson): string {
  const path: unknown = (response as { path?: unknown } | undefined)?.path;
  return typeof path === "string" ? (path.split("/").at(-1) ?? "") : "";
}
