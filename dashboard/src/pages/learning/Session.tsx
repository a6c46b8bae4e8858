/** One learning session: how it does, what it would choose and why, and how it is set. */

import type {
  GetLearningMetricsResponseJson,
  LearningMetricsJson,
  LearningSessionJson,
} from "@mneme/client/http";
import { useEffect } from "preact/hooks";
import { useLoad } from "../../api/load";
import { learning } from "../../api/services";
import { Badge, ErrorBox, Figure, Loading, PageHeader } from "../../components/basics";
import { count, num, plural, score, word } from "../../format";
import { LearningStatus } from "../Learning";
import { Configuration } from "./configuration";
import { Curves } from "./curves";
import { Evaluation } from "./evaluation";
import { Policy } from "./policy";
import { figure } from "./values";

const AGAIN_MS = 5000;
const POINTS = 200;

interface Standing {
  readonly session: LearningSessionJson;
  readonly metrics: LearningMetricsJson;
}

export function LearningSession({ id }: { id: string }) {
  const asked = useLoad((signal) => standing(id, signal), [id]);
  const active = asked.data?.session.status === "LEARNING_STATUS_ACTIVE";
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => document.hidden || asked.reload(), AGAIN_MS);
    return () => clearInterval(timer);
  }, [active]);
  return (
    <>
      <p class="crumbs">
        <a href="/learning">Learning</a>
      </p>
      {asked.data ? (
        <Shown {...asked.data} active={active} />
      ) : (
        <>
          <PageHeader title={id} />
          {!asked.error && <Loading lines={8} />}
        </>
      )}
      {asked.error && <ErrorBox error={asked.error} retry={asked.reload} />}
    </>
  );
}

async function standing(id: string, signal: AbortSignal): Promise<Standing> {
  const of = { sessionId: id };
  const [{ session = {} }, { metrics = {} }] = await Promise.all([
    learning.getLearningSession(of, { signal }),
    learning.getLearningMetrics(
      { ...of, historySize: POINTS },
      { signal },
    ) as Promise<GetLearningMetricsResponseJson>,
  ]);
  return { session, metrics };
}

function Shown({ session, metrics, active }: Standing & { active: boolean }) {
  // What depends on what was learned is asked again when more was.
  const version = `${session.status} ${session.learned} ${metrics.updates}`;
  return (
    <>
      <PageHeader
        title={session.id}
        about={
          <>
            Learns by <code>{session.algorithm}</code> from {plural(session.transitions, "step")}.
          </>
        }
        actions={
          <>
            {active && <Badge tone="info">Live</Badge>}
            <LearningStatus of={session} />
          </>
        }
      />
      <Figures session={session} metrics={metrics} />
      <Curves of={metrics} />
      <Policy session={session} version={version} />
      <Evaluation id={session.id ?? ""} />
      <Configuration session={session} metrics={metrics} />
    </>
  );
}

function Figures({ session, metrics }: Standing) {
  const settled = word(metrics.convergenceStatus, "CONVERGENCE_STATUS_");
  const behind = num(session.transitions) - num(session.learned);
  const none = num(metrics.episodesCompleted) === 0;
  return (
    <div class="figures">
      <Figure
        name="Mean reward"
        value={none ? "–" : figure(metrics.avgReward)}
        note="of an episode, over all"
      />
      <Figure
        name="Of late"
        value={none ? "–" : figure(metrics.movingAvgReward)}
        note="over the last 100 episodes"
      />
      <Figure name="Episodes" value={count(metrics.episodesCompleted)} note="that ended" />
      <Figure
        name="Steps"
        value={count(session.transitions)}
        note={behind > 0 ? `${count(behind)} still to be learned` : "recorded and learned"}
      />
      <Figure
        name="Settled"
        value={score(metrics.convergenceScore)}
        note={`of 1: ${settled || "initializing"}`}
      />
    </div>
  );
}
