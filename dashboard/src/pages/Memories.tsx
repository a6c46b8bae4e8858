/** Memories: what was remembered of somebody or something; what replaced what. */

import type { MemoryJson } from "@mneme/client/http";
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api/errors";
import { useLoad, usePages } from "../api/load";
import { memories } from "../api/services";
import { Badge, Empty, ErrorBox, Facts, PageHeader, Show, Time } from "../components/basics";
import { Confirm } from "../components/dialog";
import { Filters, TextFilter, Toggle } from "../components/filters";
import { announce } from "../components/live";
import { May } from "../components/may";
import { Pages } from "../components/table";
import { Id, Json, Text } from "../components/text";
import { num, plural, word } from "../format";
import type { PageProps } from "../pages";
import { filter, narrowing, navigate, setQuery, withQuery } from "../router";
import "../styles/remember.css";

const NAMES = ["q", "user", "agent", "project", "tag", "old", "pinned"] as const;
const FOUND = 50;

export default function Memories({ rest: [linked] }: PageProps) {
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (linked) navigate(`/memories?memory=${encodeURIComponent(linked)}`, { replace: true });
  }, [linked]);
  const removed = (): void => {
    setQuery({ memory: "" });
    setRound((before) => before + 1);
  };
  return (
    <>
      <PageHeader title="Memories" about="Facts that stay, of users, agents and projects." />
      <Filters names={NAMES}>
        <TextFilter name="q" label="Search" placeholder="what it is about" wide />
        <TextFilter name="user" label="User" />
        <TextFilter name="agent" label="Agent" />
        <TextFilter name="project" label="Project" />
        <TextFilter name="tag" label="Label" />
        <Toggle name="old" label="Replaced, too" />
        {!filter("q") && <Toggle name="pinned" label="Pinned only" />}
      </Filters>
      <div class={filter("memory") ? "split open" : "split"}>
        <div class="card list">{filter("q") ? <Found key={round} /> : <List round={round} />}</div>
        {filter("memory") && (
          <Detail
            key={filter("memory")}
            id={filter("memory")}
            onChanged={() => setRound((before) => before + 1)}
            onRemoved={removed}
          />
        )}
      </div>
    </>
  );
}

function memoryFilter() {
  return {
    ...narrowing({ userId: "user", agentId: "agent", project: "project" }),
    ...(filter("tag") && { tags: [filter("tag")] }),
  };
}

function List({ round }: { round: number }) {
  const inputs = [...NAMES.map(filter), round];
  const pages = usePages<MemoryJson>(async (pageToken, signal) => {
    const includeSuperseded = filter("old") === "1";
    const onlyPinned = filter("pinned") === "1";
    const asked = {
      filter: memoryFilter(),
      includeSuperseded,
      onlyPinned,
      pageSize: 50,
      pageToken,
    };
    const page = await memories.listMemories(asked, { signal });
    return { items: page.memories ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, inputs);
  const filtered = NAMES.some((name) => filter(name));
  return (
    <Pages of={pages} names={["memory", "memories"]} empty={<None filtered={filtered} />}>
      {(items) => <Rows of={items} />}
    </Pages>
  );
}

function Found() {
  const asked = {
    query: filter("q"),
    filter: memoryFilter(),
    includeSuperseded: filter("old") === "1",
    limit: FOUND,
  };
  const found = useLoad(
    (signal) => memories.searchMemories(asked, { signal }),
    [JSON.stringify(asked)],
  );
  return (
    <Show of={found} lines={6}>
      {({ results = [] }) =>
        results.length ? (
          <Rows of={results.flatMap((one) => one.memory ?? [])} />
        ) : (
          <None filtered />
        )
      }
    </Show>
  );
}

function Rows({ of }: { of: readonly MemoryJson[] }) {
  return (
    <ul class="rows">
      {of.map((memory) => (
        <li key={memory.id}>
          <a
            class="row"
            href={withQuery({ memory: memory.id })}
            aria-current={filter("memory") === memory.id ? "true" : undefined}
          >
            <span class="row-title">{memory.text}</span>
            {memory.supersededBy && <Badge>replaced</Badge>}
            {memory.pinned && <Badge>pinned</Badge>}
            <span class="row-text">
              {[memory.userId, memory.agentId, memory.project].filter(Boolean).join(" · ")}
            </span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function Detail(props: { id: string; onChanged: () => void; onRemoved: () => void }) {
  const { id, onChanged, onRemoved } = props;
  const loaded = useLoad((signal) => memories.getMemory({ memoryId: id }, { signal }), [id]);
  const [asking, setAsking] = useState(false);
  return (
    <section class="card detail" aria-label="The memory">
      <p class="detail-close">
        <a href={withQuery({ memory: "" })}>Close</a>
      </p>
      <Show of={loaded}>
        {({ memory = {} }) => (
          <div class="stack">
            <Text value={memory.text ?? ""} />
            <Facts
              of={[
                ["User", memory.userId],
                ["Agent", memory.agentId],
                ["Project", memory.project],
                ["Importance", word(memory.importance, "IMPORTANCE_")],
                ["Labels", memory.tags?.join(", ")],
                ["Pinned", memory.pinned ? "first in its user's profile" : undefined],
                [
                  "Said again",
                  memory.confirmedCount ? plural(memory.confirmedCount, "further day") : undefined,
                ],
                ["Holds since", <Time key="since" value={memory.since} exact />],
                ["Held until", memory.until && <Time value={memory.until} exact />],
                [
                  "Replaced by",
                  memory.supersededBy && (
                    <Id
                      value={memory.supersededBy}
                      href={withQuery({ memory: memory.supersededBy })}
                    />
                  ),
                ],
                [
                  "Replaces",
                  memory.supersedes?.length
                    ? memory.supersedes.map((one) => (
                        <Id key={one} value={one} href={withQuery({ memory: one })} />
                      ))
                    : undefined,
                ],
                ["Stored", <Time key="created" value={memory.createdAt} exact />],
                ["Id", <Id key="id" value={memory.id ?? ""} />],
              ]}
            />
            {memory.metadata && Object.keys(memory.metadata).length > 0 && (
              <div>
                <h3>Metadata</h3>
                <Json value={memory.metadata} />
              </div>
            )}
            <May scope="write">
              <div class="actions">
                <Pin
                  memory={memory}
                  onChanged={() => {
                    loaded.reload();
                    onChanged();
                  }}
                />
                <button type="button" class="danger" onClick={() => setAsking(true)}>
                  Delete
                </button>
              </div>
            </May>
            {asking && <Removal id={id} onClose={() => setAsking(false)} onRemoved={onRemoved} />}
          </div>
        )}
      </Show>
    </section>
  );
}

/** Pins a memory, so that it comes first in its user's profile, or takes that back. */
function Pin({ memory, onChanged }: { memory: MemoryJson; onChanged: () => void }) {
  const [fault, setFault] = useState<ApiError>();
  const change = async (): Promise<void> => {
    const { id = "", etag = "", pinned = false } = memory;
    try {
      await memories.updateMemory({ memory: { id, etag, pinned: !pinned }, updateMask: "pinned" });
      setFault(undefined);
      announce(pinned ? "Memory unpinned" : "Memory pinned");
      onChanged();
    } catch (error) {
      setFault(asApiError(error));
    }
  };
  return (
    <>
      <button type="button" onClick={() => void change()}>
        {memory.pinned ? "Unpin" : "Pin"}
      </button>
      {fault && <ErrorBox error={fault} />}
    </>
  );
}

/** Says first what would go along. */
function Removal(props: { id: string; onClose: () => void; onRemoved: () => void }) {
  const asked = { memoryIds: [props.id], cascade: true };
  const plan = useLoad(
    (signal) => memories.deleteMemories({ ...asked, dryRun: true }, { signal }),
    [props.id],
  );
  return (
    <Confirm
      title="Delete this memory?"
      action="Delete"
      onClose={props.onClose}
      onConfirm={async () => {
        await memories.deleteMemories(asked);
        announce("Memory deleted");
        props.onRemoved();
      }}
    >
      <Show of={plan} lines={1}>
        {(would) => (
          <p>
            This deletes {plural(would.deletedCount, "memory", "memories")},{" "}
            {plural(would.episodeCount, "episode")}, {plural(would.skillCount, "skill")} and{" "}
            {plural(would.causalEdgeCount, "causal edge")} that were made of it. It cannot be
            undone.
          </p>
        )}
      </Show>
    </Confirm>
  );
}

function None({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No memory is like that.">
        <p>Take a filter away, or ask in other words.</p>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing was remembered yet.">
      <pre>
        <code>mneme remember "The nightly export runs at 2 o'clock"</code>
      </pre>
    </Empty>
  );
}
