"""The table of results: rows, verdicts, Markdown and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Verdict:
    """Whether a budget is met: how many times over, by the worst of its figures.

    Args:
        fixed: of figures that are the same on every machine, or nearly: shares, sizes, ratios.
        paced: of times and rates, which follow the machine's pace.

    Both are None where there is no budget: the figure is for comparison.
    """

    fixed: float | None = None
    paced: float | None = None

    @property
    def judged(self) -> bool:
        """Whether there is a budget."""
        return self.fixed is not None or self.paced is not None

    def met(self, pace: float = 1.0) -> bool:
        """Whether it is met; or would be if times and rates were those of a machine on which this
        one's pace is `pace`."""
        enough = self.fixed is None or self.fixed >= 1
        return enough and (self.paced is None or self.paced >= pace)

    def words(self, pace: float | None = None) -> str:
        """Return what the table says; `pace` is that of this machine, if it is known."""
        if not self.judged:
            return "–"
        if self.met():
            return "met"
        return "missed; met to scale" if pace and self.met(pace) else "**missed**"


NO_BUDGET = Verdict()


@dataclass(frozen=True)
class Row:
    """One line of the table. `figures` are the numbers behind `measured`, for machines."""

    what: str
    budget: str
    measured: str
    verdict: Verdict
    how: str
    figures: Mapping[str, float] = field(default_factory=dict)


def at_most(measured: float, budget: float) -> Verdict:
    """Judge a figure that must not exceed its budget."""
    return Verdict(fixed=_times_below(measured, budget))


def at_least(measured: float, budget: float) -> Verdict:
    """Judge a figure that must reach its budget."""
    return Verdict(fixed=measured / budget)


def in_time(measured: float, budget: float) -> Verdict:
    """Judge a time that must not exceed its budget; both are in one unit."""
    return Verdict(paced=_times_below(measured, budget))


def at_rate(measured: float, budget: float) -> Verdict:
    """Judge a rate that must reach its budget; both are in one unit."""
    return Verdict(paced=measured / budget)


def _times_below(measured: float, budget: float) -> float:
    if measured <= 0:
        return math.inf if measured <= budget else 0.0
    return budget / measured


def both(*verdicts: Verdict) -> Verdict:
    """Return the verdict on several budgets: it is met when all are."""
    return Verdict(
        min((one.fixed for one in verdicts if one.fixed is not None), default=None),
        min((one.paced for one in verdicts if one.paced is not None), default=None),
    )


def milliseconds(value: float) -> str:
    """Format milliseconds: "0.42 ms", "8.1 ms", "1,250 ms"."""
    return (
        f"{value:.2f} ms"
        if value < 1
        else f"{value:,.1f} ms"
        if value < 100
        else f"{value:,.0f} ms"
    )


def megabytes(size: float) -> str:
    """Format bytes as MB (10^6)."""
    return f"{size / 1e6:,.0f} MB"


def markdown_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; bars in cells are escaped."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    )


_DISTURBED = (
    "**Other programs were busy during this run:** times and rates are worse than the server's own."
    " Memory holds, and processor times nearly; the ratio to a peer that keeps both cores in step"
    " flatters us."
)


def as_markdown(
    sections: Mapping[str, Sequence[Row]],
    facts: Mapping[str, str],
    *,
    disturbed: bool = False,
    pace: float | None = None,
) -> str:
    """Return the whole report; `disturbed` when other programs were busy during the run, `pace` of
    the machine, if it was measured."""
    rows = [row for section in sections.values() for row in section]
    parts = [
        "# Results",
        "Written by `make bench`; do not edit.",
        markdown_table(["machine and versions", ""], [[k, v] for k, v in facts.items()]),
        _summary([row for row in rows if row.verdict.judged], pace),
        "Times are end to end: from the client's call to its answer, over gRPC on loopback, with"
        " client and server on the same cores. Each figure is the median over several rounds;"
        " other programs on the machine make figures worse, never better.",
    ]
    if disturbed:
        parts.insert(2, _DISTURBED)
    for title, section in sections.items():
        table = markdown_table(
            ["what", "budget", "measured", "verdict", "how"],
            [[r.what, r.budget or "–", r.measured, r.verdict.words(pace), r.how] for r in section],
        )
        parts.append(f"## {title}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def _summary(judged: Sequence[Row], pace: float | None) -> str:
    missed = [row for row in judged if not row.verdict.met()]
    told = f"{len(judged) - len(missed)} of {len(judged)} budgets are met."
    scaled = [row for row in missed if pace and row.verdict.met(pace)]
    if scaled:
        told += (
            f" {len(scaled)} more are met to scale: a bare gRPC server answers {pace:.2f} times as"
            " many calls here as on the machine that times and rates were set for, so that a time"
            f" is held against its budget when multiplied by {pace:.2f}, and a rate when divided"
            " by it."
        )
    beyond = [row.what for row in missed if row not in scaled]
    return told + (f" Missed: {'; '.join(beyond)}." if beyond else "")


def as_json(
    sections: Mapping[str, Sequence[Row]], facts: Mapping[str, str], *, pace: float | None = None
) -> dict[str, object]:
    """Return the report for machines; `pace` as in `as_markdown`."""
    return {
        "facts": dict(facts),
        "pace": pace,
        "rows": [
            {
                "section": title,
                "what": row.what,
                "budget": row.budget,
                "measured": row.measured,
                "met": row.verdict.met() if row.verdict.judged else None,
                "met_to_scale": row.verdict.met(pace) if row.verdict.judged and pace else None,
                "how": row.how,
                "figures": dict(row.figures),
            }
            for title, section in sections.items()
            for row in section
        ],
    }
