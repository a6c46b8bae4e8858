/** What a pattern finds in memories, with where it matches; whoever looks says what was right. */

import type { MatchedMemoryJson, MatchPatternResponseJson, PatternJson } from "@mneme/client/http";
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { memories } from "../../api/services";
import { ErrorBox } from "../../components/basics";
import { announce } from "../../components/live";
import { May } from "../../components/may";
import { num, plural, score } from "../../format";
import { to } from "../../router";

const FOUND = 50;
const SHOWN = 400;
const BEFORE = 80;

/** Searches when it is asked to: each search counts as a use. */
export function Finding({ pattern, onUse }: { pattern: PatternJson; onUse: () => void }) {
  const [found, setFound] = useState<MatchPatternResponseJson>();
  const [verdicts, setVerdicts] = useState<Readonly<Record<string, boolean>>>({});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const name = pattern.name ?? "";
  const attempt = async (doing: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await doing();
      onUse();
    } catch (failed) {
      setError(asApiError(failed));
    }
    setBusy(false);
  };
  const search = (): Promise<void> =>
    attempt(async () => {
      const answer = await memories.matchPattern({ name, limit: FOUND, peek: true });
      setFound(answer);
      announce(inWords(answer));
    });
  const judge = (memoryId: string, right: boolean): Promise<void> =>
    attempt(async () => {
      await memories.recordPatternMatches({ name, verdicts: [{ memoryId, right }] });
      setVerdicts({ ...verdicts, [memoryId]: right });
      announce(right ? "Noted as right" : "Noted as wrong");
    });
  return (
    <section aria-label="Matches">
      <div class="actions">
        <button type="button" onClick={() => void search()} disabled={busy}>
          Search memories
        </button>
        {found && <span class="muted">{inWords(found)}</span>}
      </div>
      {error && <ErrorBox error={error} />}
      {found && (
        <ul class="rows" aria-label="Memories that match">
          {(found.results ?? []).map((one) => (
            <Match
              key={one.memory?.id}
              of={one}
              marked={pattern.regex !== undefined}
              verdict={verdicts[one.memory?.id ?? ""]}
              busy={busy}
              onJudge={(right) => void judge(one.memory?.id ?? "", right)}
            />
          ))}
        </ul>
      )}
    </section>
  );
}

function inWords(found: MatchPatternResponseJson): string {
  const of = plural(found.searchedCount, "memory", "memories");
  const matches = num(found.totalMatches);
  const more = found.matchesCapped || found.partial ? " at least" : "";
  if (matches === 0) return `None of ${of} matches.`;
  const shown = found.results?.length ?? 0;
  const cut = shown < matches ? `, ${shown} shown` : "";
  return `${matches.toLocaleString()} of ${of} ${matches === 1 ? "matches" : "match"}${more}${cut}.`;
}

function Match(props: {
  of: MatchedMemoryJson;
  marked: boolean;
  verdict: boolean | undefined;
  busy: boolean;
  onJudge: (right: boolean) => void;
}) {
  const { memory = {}, similarity } = props.of;
  return (
    <li class="match">
      <p class="match-text">{props.marked ? marked(props.of) : cut([...(memory.text ?? "")])}</p>
      <div class="actions">
        <a href={to("memories", memory.id ?? "")}>Its memory</a>
        {similarity !== undefined && <span class="fine">similarity {score(num(similarity))}</span>}
        <May scope="write">
          <button
            type="button"
            class="quiet"
            aria-pressed={props.verdict === true}
            disabled={props.busy}
            onClick={() => props.onJudge(true)}
          >
            {props.verdict === true ? "✓ Right" : "Right"}
          </button>
          <button
            type="button"
            class="quiet"
            aria-pressed={props.verdict === false}
            disabled={props.busy}
            onClick={() => props.onJudge(false)}
          >
            {props.verdict === false ? "✗ Wrong" : "Wrong"}
          </button>
        </May>
      </div>
    </li>
  );
}

/** The text around the first match, with every match in it marked; places count code points. */
function marked({ memory = {}, matches = [] }: MatchedMemoryJson) {
  const text = [...(memory.text ?? "")];
  const from = Math.max(0, num(matches[0]?.start) - BEFORE);
  const until = Math.min(text.length, from + SHOWN);
  const parts: preact.ComponentChild[] = [from > 0 && "…"];
  let after = from;
  for (const match of matches) {
    const [start, end] = [num(match.start), Math.min(num(match.end), until)];
    if (start < after || start >= until || end <= start) continue;
    parts.push(text.slice(after, start).join(""));
    parts.push(<mark key={start}>{text.slice(start, end).join("")}</mark>);
    after = end;
  }
  return [...parts, text.slice(after, until).join(""), until < text.length && "…"];
}

function cut(text: readonly string[]): string {
  const shown = text.slice(0, SHOWN).join("");
  return text.length > SHOWN ? `${shown}…` : shown;
}
