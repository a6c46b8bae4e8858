"""What a learning session is and does, as people read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mneme.cli import cells
from mneme.cli.charts import column_chart, sparkline
from mneme.cli.output import Column
from mneme.spaces import plain_space, plain_value

if TYPE_CHECKING:
    from mneme.types import (
        Action,
        ActionScore,
        AlgorithmDescription,
        AlgorithmKey,
        BestPolicy,
        LearningMetrics,
        LearningSession,
        MetricsPoint,
        Space,
        TrainResponse,
    )

ALGORITHMS = (
    Column("Algorithm", style="cyan"),
    Column("Actions"),
    Column("Learns from", optional=1),
    Column("Here", optional=2),
    Column("Summary", below=True, lines=3),
)
KEYS = (
    Column("Key", style="cyan"),
    Column("Default", right=True),
    Column("Valid"),
    Column("Meaning", below=True, lines=3),
)
SETTINGS = (
    Column("Key", style="cyan"),
    Column("Value", right=True, style="bold"),
    Column("Default", right=True),
    Column("Valid", optional=1),
    Column("Meaning", below=True, lines=3),
)
SCORES = (
    Column("Action", flexible=True, style="cyan"),
    Column("Value", right=True),
    Column("Probability", right=True),
)


def number(value: float | None) -> str:
    """A figure to four digits; empty when there is none."""
    return "" if value is None else f"{value:.4g}"


def action(value: Action) -> str:
    """An action as it is given: JSON, or a label as it is."""
    plain = plain_value(value)
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return cells.preview(text, 200)


def session_facts(session: LearningSession) -> list[tuple[str, str]]:
    """All that is known of a session but its settings."""
    behind = session.transitions - session.learned
    known = [action(one) for one in session.known_actions[:20]]
    more = len(session.known_actions) - len(known)
    return [
        ("Session", cells.preview(session.id)),
        ("Algorithm", session.algorithm),
        ("Status", cells.name(session.status)),
        ("States", _space(session.state_space)),
        ("Actions", _space(session.action_space)),
        ("Known", ", ".join(known) + (f" and {more:,} more" if more else "")),
        ("Steps", cells.count(session.transitions) + (f", {behind:,} to learn" if behind else "")),
        ("Episodes", cells.count(session.episodes_completed)),
        ("Reward", f"{number(session.total_reward)} in all"),
        ("Mean", f"{number(session.avg_reward)} an episode" if session.episodes_completed else ""),
        ("Takes", cells.size(session.experience_bytes)),
        ("Learns", cells.name(session.learning)),
        ("Seed", str(session.seed)),
        ("Started", cells.when(session.created_at)),
        ("Updated", cells.when(session.updated_at)),
        ("Ended", cells.when(session.ended_at)),
    ]


def _space(space: Space) -> str:
    return cells.preview(cells.json_text(plain_space(space)), 200)


def algorithm_row(found: AlgorithmDescription) -> list[str]:
    """A row of `ALGORITHMS`."""
    kinds = {
        "discrete": found.discrete_actions,
        "new ones": found.open_actions,
        "box": found.continuous_actions,
    }
    return [
        found.name,
        ", ".join(kind for kind, works in kinds.items() if works),
        "its own behaviour" if found.on_policy else "any behaviour",
        "yes" if found.available else f"no: {cells.preview(found.missing)}",
        cells.preview(found.summary),
    ]


def algorithm_facts(found: AlgorithmDescription) -> list[tuple[str, str]]:
    """An algorithm without its keys."""
    name, actions, learns, here, summary = algorithm_row(found)
    return [
        ("Algorithm", name),
        ("Summary", summary),
        ("Source", cells.preview(found.source)),
        ("Actions", actions),
        ("Learns from", learns),
        ("Here", here),
    ]


def key_row(key: AlgorithmKey) -> list[str]:
    """A row of `KEYS`."""
    return [key.name, _default(key), _valid(key), cells.preview(key.meaning)]


def setting_row(key: AlgorithmKey, config: dict[str, Any]) -> list[str]:
    """A row of `SETTINGS`."""
    value = config.get(key.name)
    shown = value if isinstance(value, str) else number(value)
    return [key.name, shown, _default(key), _valid(key), cells.preview(key.meaning)]


def _default(key: AlgorithmKey) -> str:
    return key.text if key.text is not None else number(key.number)


def _valid(key: AlgorithmKey) -> str:
    if key.choices:
        return ", ".join(key.choices)
    bounds = f"{number(key.low)} to {number(key.high)}" if key.high is not None else (
        f"from {number(key.low)}" if key.low is not None else "any"
    )  # fmt: skip
    return f"{bounds}, whole" if key.whole else bounds


def score_row(score: ActionScore) -> list[str]:
    """A row of `SCORES`."""
    return [action(score.action), number(score.value), f"{100 * score.probability:.1f} %"]


def metrics_facts(metrics: LearningMetrics) -> list[tuple[str, str]]:
    """How a session does, in figures."""
    episodes, losses = metrics.episodes_completed, [point.loss for point in metrics.history]
    rate = metrics.exploration_rate
    known = [loss for loss in losses if loss is not None]
    took = metrics.training_time.total_seconds() if metrics.training_time else 0.0
    return [
        ("Episodes", f"{episodes:,} ({metrics.transitions:,} steps)"),
        ("Reward", f"{number(metrics.total_reward)} in all"),
        ("Mean", f"{number(metrics.avg_reward)} an episode" if episodes else ""),
        ("Lately", f"{number(metrics.moving_avg_reward)} an episode" if episodes else ""),
        (
            "Settled",
            f"{cells.score(metrics.convergence_score)} {cells.name(metrics.convergence_status)}",
        ),
        ("Loss", f"{sparkline(losses)} {number(known[-1])}" if known else ""),
        ("Its trend", cells.name(metrics.loss_trend)),
        ("Explores", f"{100 * rate:.3g} % of the time" if rate is not None else ""),
        ("Updates", f"{metrics.updates:,} in {cells.span(took)}"),
        ("Best policy", _best(metrics.best_policy)),
        *(("Note", note) for note in metrics.notes),
    ]


def _best(policy: BestPolicy | None) -> str:
    """What the best policy so far brought; empty if none is kept."""
    if policy is None:
        return ""
    chooses = "; it chooses" if policy.chooses else ""
    return f"{number(policy.avg_reward)} an episode, up to episode {policy.episode:,}{chooses}"


def reward_chart(history: Sequence[MetricsPoint], width: int) -> list[str]:
    """The rewards of episodes, averaged, as a chart with its title; empty without two of them."""
    if len(history) < 2:
        return []
    lines = column_chart([point.moving_avg_reward for point in history], width)
    first, last = f"{history[0].episode:,}", f"{history[-1].episode:,}"
    drawn = min(len(history), width)
    margin = lines[0].index("┤") + 1
    gap = max(drawn - len(first) - len(last), 1)
    return [
        "",
        "Reward of an episode, mean of the last 100",
        *lines,
        f"{'':{margin}}{first}{'':{gap}}{last}",
    ]


def standing(metrics: LearningMetrics) -> str:
    """How a session does, on a line."""
    return (
        f"{cells.plural(metrics.episodes_completed, 'episode')}, "
        f"{cells.plural(metrics.transitions, 'step')}; reward {number(metrics.avg_reward)}, "
        f"lately {number(metrics.moving_avg_reward)}; {cells.name(metrics.convergence_status)} "
        f"({metrics.convergence_score:.2f})"
    )


def trained(answer: TrainResponse) -> str:
    """How far training is, on a line."""
    loss = f", loss {number(answer.loss)}" if answer.loss is not None else ""
    return (
        f"{answer.steps_completed:,} of {cells.plural(answer.num_steps, 'step')}, "
        f"{cells.plural(answer.updates, 'update')}{loss}, {answer.steps_per_second:,.0f} steps/s"
    )
