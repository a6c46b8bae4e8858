/** Admin: tenants, keys, what is used, what runs, backups, and forgetting. */

import type { TenantJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { useLoad, usePages } from "../api/load";
import { admin } from "../api/services";
import { Empty, Figure, PageHeader, Section, Show, Time } from "../components/basics";
import { Confirm } from "../components/dialog";
import { announce } from "../components/live";
import { Pages, Table } from "../components/table";
import { bytes, count, num, short } from "../format";
import { filter, setQuery, withQuery } from "../router";
import { Backups } from "./admin/backups";
import { Forgetting } from "./admin/forgetting";
import { Keys } from "./admin/keys";
import { Operations } from "./admin/operations";
import { TenantDialog } from "./admin/tenant";
import "../styles/admin.css";

const PARTS = [
  ["", "Tenants"],
  ["keys", "Keys"],
  ["operations", "Operations"],
  ["backups", "Backups"],
  ["forgetting", "Forgetting"],
] as const;

export default function Admin() {
  const part = filter("part");
  return (
    <>
      <PageHeader
        title="Admin"
        about="For whoever runs the server: it needs a key with the scope admin."
      />
      <nav class="tabs" aria-label="Parts">
        {PARTS.map(([name, text]) => (
          <a
            key={name}
            href={withQuery({ part: name })}
            aria-current={name === part ? "page" : undefined}
          >
            {text}
          </a>
        ))}
      </nav>
      {part === "" && <Tenants />}
      {part === "keys" && <Keys />}
      {part === "operations" && <Operations />}
      {part === "backups" && <Backups />}
      {part === "forgetting" && <Forgetting />}
    </>
  );
}

function Tenants() {
  const [round, setRound] = useState(0);
  const [making, setMaking] = useState(false);
  const [removing, setRemoving] = useState<string>();
  const again = (): void => setRound((before) => before + 1);
  const pages = usePages<TenantJson>(
    async (pageToken, signal) => {
      const page = await admin.listTenants({ pageSize: 100, pageToken }, { signal });
      return { items: page.tenants ?? [], next: page.nextPageToken };
    },
    [round],
  );
  return (
    <>
      <Usage tenant={filter("tenant")} />
      <Section
        title="Tenants"
        about="Each has its own files; nobody sees what is another's."
        actions={
          <button type="button" class="primary" onClick={() => setMaking(true)}>
            New tenant
          </button>
        }
      >
        <Pages
          of={pages}
          names={["tenant", "tenants"]}
          empty={<Empty title="There is no tenant." />}
        >
          {(tenants) => (
            <Table
              caption="Tenants"
              rows={tenants}
              keyOf={(row) => row.id ?? ""}
              columns={[
                {
                  name: "Tenant",
                  cell: (row) => <a href={withQuery({ tenant: row.id })}>{row.id}</a>,
                },
                { name: "Name", cell: (row) => row.displayName || "–" },
                { name: "Since", wide: true, cell: (row) => <Time value={row.createdAt} /> },
                {
                  name: "Keys",
                  cell: (row) => (
                    <a
                      href={withQuery({ part: "keys", tenant: row.id })}
                      aria-label={`Show the keys of ${row.id}`}
                    >
                      Show
                    </a>
                  ),
                },
                {
                  name: "Delete",
                  cell: (row) => (
                    <button
                      type="button"
                      class="danger"
                      aria-label={`Delete ${row.id}`}
                      onClick={() => setRemoving(row.id)}
                    >
                      Delete
                    </button>
                  ),
                },
              ]}
            />
          )}
        </Pages>
      </Section>
      {making && (
        <TenantDialog
          onClose={() => setMaking(false)}
          onMade={(id) => {
            setMaking(false);
            announce(`Tenant ${id} created`);
            again();
            setQuery({ tenant: id });
          }}
        />
      )}
      {removing && (
        <Confirm
          title={`Delete the tenant ${removing}?`}
          action="Delete for good"
          typed={removing}
          onClose={() => setRemoving(undefined)}
          onConfirm={async () => {
            await admin.deleteTenant({ tenantId: removing });
            announce(`Deleting ${removing} began`);
            again();
          }}
        >
          <p>
            Its sessions, events, lessons, memories, keys and backups are erased. It cannot be
            undone. How far it is stands under Operations.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** What a tenant uses, and what waits; of the key's own tenant where none is chosen. */
function Usage({ tenant }: { tenant: string }) {
  const stats = useLoad((signal) => admin.getStats({ tenantId: tenant }, { signal }), [tenant]);
  return (
    <Show of={stats} lines={2}>
      {({ tenant: of = {}, server = {} }) => (
        <Section title={`Usage of ${of.tenantId}`}>
          <div class="figures">
            <Figure name="On disk" value={bytes(of.diskBytes)} />
            <Figure
              name="Events"
              value={short(of.eventCount)}
              note={`${count(of.sessionCount)} sessions`}
            />
            <Figure
              name="Memories"
              value={short(of.memoryCount)}
              note={`${count(of.vectorCount)} vectors`}
            />
            <Figure
              name="Queue"
              value={count(of.pendingCount)}
              note="texts wait to be embedded"
              tone={num(of.pendingCount) > 10_000 ? "warn" : "plain"}
            />
            <Figure
              name="Failed"
              value={count(of.failedCount)}
              note="texts were not embedded"
              tone={num(of.failedCount) ? "bad" : "plain"}
            />
          </div>
          <p class="fine">
            mneme-server {server.version}, {server.embeddingModel}, up since{" "}
            <Time value={server.startedAt} exact />
          </p>
        </Section>
      )}
    </Show>
  );
}
