"""The table of results: rows, verdicts, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Verdict(Enum):
    """Whether a budget is met. NONE: there is no budget, the figure is for comparison."""

    MET = "met"
    MISSED = "**missed**"
    NONE = "–"


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
    return Verdict.MET if measured <= budget else Verdict.MISSED


def at_least(measured: float, budget: float) -> Verdict:
    """Judge a figure that must reach its budget."""
    return Verdict.MET if measured >= budget else Verdict.MISSED


def both(*verdicts: Verdict) -> Verdict:
    """Return MISSED when any budget of several is missed."""
    judged = [verdict for verdict in verdicts if verdict is not Verdict.NONE]
    if not judged:
        return Verdict.NONE
    return Verdict.MISSED if Verdict.MISSED in judged else Verdict.MET


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
    sections: Mapping[str, Sequence[Row]], facts: Mapping[str, str], *, disturbed: bool = False
) -> str:
    """Return the whole report; `disturbed` when other programs were busy during the run."""
    rows = [row for section in sections.values() for row in section]
    missed = [row.what for row in rows if row.verdict is Verdict.MISSED]
    judged = sum(row.verdict is not Verdict.NONE for row in rows)
    parts = [
        "# Results",
        "Written by `make bench`; do not edit.",
        markdown_table(["machine and versions", ""], [[k, v] for k, v in facts.items()]),
        f"{judged - len(missed)} of {judged} budgets are met."
        + (f" Missed: {'; '.join(missed)}." if missed else ""),
        "Times are end to end: from the client's call to its answer, over gRPC on loopback, with"
        " client and server on the same cores. Each figure is the median over several rounds;"
        " other programs on the machine make figures worse, never better.",
    ]
    if disturbed:
        parts.insert(2, _DISTURBED)
    for title, section in sections.items():
        table = markdown_table(
            ["what", "budget", "measured", "verdict", "how"],
            [[r.what, r.budget or "–", r.measured, r.verdict.value, r.how] for r in section],
        )
        parts.append(f"## {title}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def as_json(sections: Mapping[str, Sequence[Row]], facts: Mapping[str, str]) -> dict[str, object]:
    """Return the report for machines."""
    return {
        "facts": dict(facts),
        "rows": [
            {
                "section": title,
                "what": row.what,
                "budget": row.budget,
                "measured": row.measured,
                "verdict": row.verdict.name.lower(),
                "how": row.how,
                "figures": dict(row.figures),
            }
            for title, section in sections.items()
            for row in section
        ],
    }
