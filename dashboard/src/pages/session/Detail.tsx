/** One step in full. */

import type { EventJson } from "@mneme/client/http";
import type { ComponentChildren } from "preact";
import { useLoad } from "../../api/load";
import { recall } from "../../api/services";
import { Badge, Facts, Show, Time } from "../../components/basics";
import { Id, Json, Text } from "../../components/text";
import { cost, count, duration, durationMs, num, score, word } from "../../format";
import { sourceHref } from "../../links";
import { argumentsOf, isError, messageOf, resultOf, roleOf, type Step } from "./steps";

/** The pane of details. */
export function Detail({ step }: { step: Step }) {
  const { event, answer } = step;
  const failure = [answer, event].find((part) => part && isError(part));
  return (
    <article class="detail" aria-label="Details">
      {failure && (
        <div class="failure">
          <h3>{failure.name ? `${failure.name} failed` : "Error"}</h3>
          <Text value={messageOf(failure)} />
        </div>
      )}
      {step.kind === "call" ? (
        <Call step={step} />
      ) : (
        !failure && (
          <Part title={roleOf(event) || event.name || (event.eventType ?? "")}>
            {event.text ? (
              <Text value={event.text} />
            ) : (
              <p class="muted">Nothing was said; the record below has the rest.</p>
            )}
          </Part>
        )
      )}
      {failure && <Learned error={messageOf(failure)} />}
      <Record event={event} title={answer ? "The call" : "The record"} />
      {answer && <Record event={answer} title="The answer" />}
    </article>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="part">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function Call({ step: { event, answer } }: { step: Step }) {
  return (
    <div class="sides">
      <Part title={`${event.name || "Call"}: arguments`}>
        {event.eventType === "tool_call" ? (
          <Json value={argumentsOf(event)} />
        ) : (
          <p class="muted">The call itself was not recorded.</p>
        )}
      </Part>
      <Part title="Result">
        {(answer ?? event.eventType !== "tool_call") ? (
          <Json value={resultOf(answer ?? event)} />
        ) : (
          <p class="muted">No answer was recorded.</p>
        )}
      </Part>
    </div>
  );
}

/** What is known about an error: lessons, and the attempt that was nearest to it. */
function Learned({ error }: { error: string }) {
  const query = error.slice(0, 1000);
  const found = useLoad(
    async (signal) => {
      // Each by itself: several attempts at one task would leave no room for a lesson.
      const kinds = [
        { scopes: ["lesson"], limit: 2 },
        { scopes: ["reflection"], limit: 1 },
      ].map((kind) => recall.recall({ query, ...kind }, { signal }));
      return (await Promise.all(kinds)).flatMap(({ results = [] }) => results);
    },
    [query],
  );
  const search = `/search?${new URLSearchParams({ q: query.slice(0, 300) })}`;
  return (
    <Part title="What was learned about it">
      <Show of={found} lines={2}>
        {(results) =>
          results.length > 0 ? (
            <ul class="learned">
              {results.map((result) => (
                <li key={result.sourceId}>
                  <a href={sourceHref(result) ?? "/lessons"}>
                    {(result.text ?? "").split("\n")[0]}
                  </a>
                  <span class="fine"> fits {score(result.score)}</span>
                </li>
              ))}
            </ul>
          ) : (
            <p class="muted">No lesson bears on it yet.</p>
          )
        }
      </Show>
      <p class="links">
        <a href={search}>Where else it happened</a>
        <a href="/lessons">All lessons</a>
      </p>
    </Part>
  );
}

/** Everything that was recorded, with its place in the chain. */
function Record({ event, title }: { event: EventJson; title: string }) {
  const tokens = num(event.inputTokens) + num(event.outputTokens);
  const took = durationMs(event.duration);
  return (
    <details class="record">
      <summary>
        {title} <Badge>{event.eventType}</Badge>
      </summary>
      <Facts
        of={[
          ["When", <Time key="t" value={event.timestamp} exact />],
          ["Took", took === undefined ? "" : duration(took)],
          ["Severity", word(event.severity, "SEVERITY_")],
          ["Agent", event.agentId],
          ["Model", event.model],
          [
            "Tokens",
            tokens ? `${count(event.inputTokens)} in, ${count(event.outputTokens)} out` : "",
          ],
          ["Cost", num(event.costUsd) ? cost(event.costUsd) : ""],
          ["Can be recalled", event.searchable ? "yes" : "no"],
          ["Place in the chain", count(event.sequence)],
          ["Event", <Id key="i" value={event.id ?? ""} />],
          ["Hash", <Id key="h" value={event.hash ?? ""} />],
        ]}
      />
      {has(event.payload) && (
        <Part title="Payload">
          <Json value={event.payload} />
        </Part>
      )}
      {has(event.metadata) && (
        <Part title="Metadata">
          <Json value={event.metadata} />
        </Part>
      )}
    </details>
  );
}

function has(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}
