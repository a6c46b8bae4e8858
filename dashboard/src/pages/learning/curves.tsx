/** How rewards and losses went, episode by episode. */

import type { LearningMetricsJson, MetricsPointJson } from "@mneme/client/http";
import { Empty, Section } from "../../components/basics";
import { type Line, Lines } from "../../components/chart";
import { count, num, percent, word } from "../../format";
import { figure } from "./values";

/** The curves, each with its table. */
export function Curves({ of }: { of: LearningMetricsJson }) {
  const points = of.history ?? [];
  if (points.length === 0) {
    return (
      <Section title="Rewards">
        <Empty title="No episode has ended yet.">
          <p>Tell the session what came of its actions: each end of an episode is a point here.</p>
        </Empty>
      </Section>
    );
  }
  const common = {
    xName: "Episode",
    x: points.map((point) => num(point.episode)),
    formatX: (episode: number) => count(episode),
    format: figure,
  };
  const line = (name: string, key: keyof MetricsPointJson): Line => ({
    name,
    values: points.map((point) => known(point[key])),
  });
  const loss = line("Loss", "loss");
  const gone = word(of.lossTrend, "LOSS_TREND_").replace("unspecified", "");
  return (
    <div class="grid">
      <Section title="Rewards" about="What an episode brought, and the mean of the last 100.">
        <Lines
          {...common}
          title="Rewards of episodes"
          lines={[
            // What is 0 is left out of an answer; a point always has these two.
            { name: "Reward", values: points.map((point) => num(point.episodeReward)) },
            { name: "Mean", values: points.map((point) => num(point.movingAvgReward)) },
          ]}
        />
      </Section>
      <Section
        title="Loss"
        about={`How far off its expectations were${gone ? `; the trend is ${gone}` : ""}.`}
      >
        {loss.values.some((value) => value !== null) ? (
          <Lines {...common} title="Loss of episodes" lines={[loss]} />
        ) : (
          <p class="muted">
            No episode here has one: none is kept of steps that were recorded in one piece.
          </p>
        )}
      </Section>
      <Optional
        {...common}
        title="Exploring"
        format={(value) => percent(value, 0)}
        line={line("Explores", "explorationRate")}
      />
      <Optional {...common} title="Gradients" line={line("Mean norm", "gradientNorm")} />
    </div>
  );
}

/** A curve that only some algorithms have, and that says nothing where it never moves. */
function Optional(props: Omit<Parameters<typeof Lines>[0], "lines"> & { line: Line }) {
  const { line, ...chart } = props;
  const seen = new Set(line.values.filter((value) => value !== null));
  if (seen.size < 2) return null;
  return (
    <Section title={chart.title}>
      <Lines {...chart} lines={[line]} />
    </Section>
  );
}

function known(value: unknown): number | null {
  const read = Number(value ?? Number.NaN);
  return Number.isFinite(read) ? read : null;
}
