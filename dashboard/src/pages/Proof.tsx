/** Proof: the log's head and its keys; a certificate is verified here, in the browser. */

import { useId, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api/errors";
import { useLoad } from "../api/load";
import { proof } from "../api/services";
import {
  Badge,
  ErrorBox,
  Facts,
  Loading,
  PageHeader,
  Section,
  Show,
  Time,
} from "../components/basics";
import { announce } from "../components/live";
import { Table } from "../components/table";
import { Id, Text } from "../components/text";
import { count, score } from "../format";
import { check, type Problem, type Verified } from "./proof/verifying";
import "../styles/proof.css";

export default function Proof() {
  return (
    <>
      <PageHeader
        title="Proof"
        about="Everything that is recorded is a leaf of a log whose head is signed: nothing can be changed or taken away unseen."
      />
      <Verifier />
      <Checkpoint />
      <Keys />
    </>
  );
}

type Outcome = { verified: Verified } | { problems: readonly Problem[] };

/** Takes a certificate, dropped or chosen, and the keys that are trusted. */
function Verifier() {
  const id = useId();
  const known = useLoad((signal) => proof.listLogKeys({}, { signal }), []);
  const [trusted, setTrusted] = useState<string>();
  const [file, setFile] = useState<File>();
  const [outcome, setOutcome] = useState<Outcome>();
  const [error, setError] = useState<ApiError>();
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);
  const ofServer = (known.data?.keys ?? []).map((key) => key.verifierKey ?? "").join("\n");
  const keys = trusted ?? ofServer;
  const run = async (given: File | undefined): Promise<void> => {
    if (!given) return;
    setFile(given);
    setBusy(true);
    setError(undefined);
    setOutcome(undefined);
    try {
      const lines = keys.split("\n").filter((line) => line.trim());
      const found = await check(new Uint8Array(await given.arrayBuffer()), lines);
      setOutcome(found);
      announce("verified" in found ? "The certificate holds" : "The certificate does not hold");
    } catch (failed) {
      setError(asApiError(failed));
    }
    setBusy(false);
  };
  return (
    <Section
      title="Verify a certificate"
      about="It is checked in this browser: its spelling, its signature, the log's head, and the proof of each result. Nothing is sent."
    >
      <div class="stack">
        {/* biome-ignore lint/a11y/noStaticElementInteractions: the field inside does the same. */}
        <div
          class={over ? "drop over" : "drop"}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={(event) => {
            event.preventDefault();
            setOver(false);
            void run(event.dataTransfer?.files[0]);
          }}
        >
          <label for={id}>Drop a certificate here, or choose its file</label>
          <input
            id={id}
            type="file"
            accept=".json,application/json"
            onChange={(event) => void run(event.currentTarget.files?.[0])}
          />
        </div>
        <details>
          <summary>The keys that are trusted</summary>
          <p class="fine">
            These come from this server. To trust it no more than needed, put in the keys that you
            noted before, one a line.
          </p>
          <textarea
            aria-label="Keys that are trusted"
            rows={3}
            spellcheck={false}
            value={keys}
            onInput={(event) => setTrusted(event.currentTarget.value)}
          />
          {file && (
            <button type="button" onClick={() => void run(file)}>
              Verify again
            </button>
          )}
        </details>
        {busy && <Loading />}
        {error && <ErrorBox error={error} />}
        {outcome && <Verdict of={outcome} name={file?.name ?? ""} />}
      </div>
    </Section>
  );
}

function Verdict({ of, name }: { of: Outcome; name: string }) {
  if ("problems" in of) {
    return (
      <div class="error-box" role="alert">
        <p>
          <strong>{name} does not hold.</strong> What is wrong with it:
        </p>
        <ul class="points">
          {of.problems.map((problem) => (
            <li key={`${problem.part} ${problem.message}`}>
              <code>{problem.part}</code>: {problem.message}
            </li>
          ))}
        </ul>
      </div>
    );
  }
  const { id, checkpoint, items, signedBy } = of.verified;
  return (
    <div class="stack">
      <p>
        <Badge tone="good">holds</Badge> {name} is signed by a trusted key, and all its results were
        recorded as it says.
      </p>
      <Facts
        of={[
          ["Certificate", <Id key="id" value={id} />],
          ["Signed by", <Id key="signer" value={signedBy} />],
          ["Log", checkpoint.origin],
          ["Entries when it was made", count(checkpoint.size)],
        ]}
      />
      <Table
        caption="What it proves"
        rows={items}
        keyOf={(row) => `${row.sourceType} ${row.sourceId}`}
        columns={[
          { name: "Entry", right: true, cell: (row) => count(row.leafIndex) },
          { name: "Kind", cell: (row) => row.sourceType },
          { name: "Id", cell: (row) => <Id value={row.sourceId} /> },
          { name: "Score", right: true, cell: (row) => score(row.score) },
          { name: "Content", wide: true, cell: (row) => <Text value={row.content} mono /> },
        ]}
      />
    </div>
  );
}

function Checkpoint() {
  const head = useLoad((signal) => proof.getCheckpoint({}, { signal }), []);
  return (
    <Section title="The log's head" about="Keep it: a later head must be shown to contain it.">
      <Show of={head}>
        {(said) => (
          <div class="stack">
            <Facts
              of={[
                ["Log", <Id key="log" value={said.origin ?? ""} />],
                ["Entries", count(said.size)],
                ["Root hash", <Id key="root" value={said.rootHash ?? ""} />],
              ]}
            />
            <pre class="snippet note">
              <code>{said.note}</code>
            </pre>
          </div>
        )}
      </Show>
    </Section>
  );
}

function Keys() {
  const known = useLoad((signal) => proof.listLogKeys({}, { signal }), []);
  return (
    <Section title="Keys that signed it">
      <Show of={known}>
        {({ keys = [] }) => (
          <Table
            caption="Keys that signed it"
            rows={keys}
            keyOf={(row) => row.verifierKey ?? ""}
            columns={[
              { name: "Number", right: true, wide: true, cell: (row) => count(row.number) },
              { name: "Key", cell: (row) => <code class="breaks">{row.verifierKey}</code> },
              { name: "Since", wide: true, cell: (row) => <Time value={row.createdAt} exact /> },
              {
                name: "Until",
                cell: (row) => (row.retiredAt ? <Time value={row.retiredAt} exact /> : "in use"),
              },
            ]}
          />
        )}
      </Show>
    </Section>
  );
}
