"""What a consolidated skill is called, and what it says to an agent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from mneme_server.features.context.words import ended, folded, words_of
from mneme_server.features.reflect.wording import of, percent, sequence, sure
from mneme_server.features.skills.comparing import MIN_GROUP
from mneme_server.features.skills.findings import Difference, Findings, Trait
from mneme_server.features.skills.skill_model import rate_interval

_NAME_WORDS = 5
_FREQUENT = 0.5
"""Share of a group's tasks from which a word may be part of its name."""
_DIGIT = re.compile(r"\d")
_MAX_TOOLS = 6
_MAX_CRITIQUES = 3


def word_sets(tasks: Sequence[str]) -> list[frozenset[str]]:
    """Return the words of each task that say something, without ids."""
    return [frozenset(map(folded, _plain_words(task))) for task in tasks]


def _plain_words(task: str) -> list[str]:
    return [word for word in words_of(task) if not _DIGIT.search(word)]


def name_of(
    example: str, inside: Sequence[frozenset[str]], share_of: Counter[str], total: int
) -> str:
    """Return a name: the words that half of a group's tasks have, and that others have less often.

    Args:
        example: the most typical task, whose order and forms of words it takes.
        inside: the words of the group's tasks.
        share_of: how many of all tasks have each word.
        total: how many tasks there are.
    """
    here = Counter(word for words in inside for word in words)
    size = len(inside)

    def weight(word: str) -> float:
        share, everywhere = here[word] / size, share_of[word] / total
        return share * (1.0 + share - everywhere)

    frequent = [word for word in here if here[word] >= _FREQUENT * size]
    chosen = set(sorted(frequent, key=lambda word: (-weight(word), word))[:_NAME_WORDS])
    in_order = dict.fromkeys(word for word in _plain_words(example) if folded(word) in chosen)
    forms: dict[str, str] = {}
    for word in in_order:
        forms.setdefault(folded(word), word)
    missing = sorted(chosen - forms.keys())
    words = [*forms.values(), *missing] or _plain_words(example)[:_NAME_WORDS] or ["task"]
    return "_".join(re.sub(r"\W+", "_", word).strip("_") for word in words)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number behind it if it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def description_of(findings: Findings) -> str:
    """Return what the findings say, in sentences, a line for each point."""
    return "\n".join(_lines(findings))


def _lines(findings: Findings) -> Iterator[str]:
    yield f"For tasks like: “{findings.example_task}”"
    low, high = rate_interval(findings.successes, findings.attempts)
    yield (
        f"Worked in {findings.successes} of {findings.attempts} attempts"
        f" ({percent(findings.successes / findings.attempts)}; 95 % interval {percent(low)} to"
        f" {percent(high)})."
    )
    if findings.ways:
        ways = (f"{sequence(way.tools)} ({way.successes} of {findings.successes})"
                for way in findings.ways)  # fmt: skip
        yield f"How successes went: {'; '.join(ways)}."
    if findings.shared:
        tools = (_called(one, findings) for one in findings.shared[:_MAX_TOOLS])
        yield f"Most successes called {', '.join(tools)}."
    yield from _told_apart(findings)
    for point in findings.critiques[:_MAX_CRITIQUES]:
        said_by = ", ".join(
            f"{count} {how}"
            for count, how in ((point.failures, "failed"), (point.successes, "succeeded"))
            if count
        )
        yield f"A critique says: “{point.text}” ({said_by})"
    if findings.example_output:
        yield f"A typical success ended with: “{findings.example_output}”"


def _called(tool: Difference, findings: Findings) -> str:
    successes = f"{tool.successes} of {findings.successes}"
    if not findings.failures:
        return f"{tool.name} ({successes})"
    return f"{tool.name} ({successes}; failures: {tool.failures} of {findings.failures})"


def _told_apart(findings: Findings) -> Iterator[str]:
    """Say what failures do or lack, or why nobody knows."""
    failures = findings.failures
    if not failures:
        yield "No attempt failed, so nothing tells what to avoid."
    elif failures < MIN_GROUP or findings.successes < MIN_GROUP:
        fewer = min(failures, findings.successes)
        how = "failed" if fewer == failures else "succeeded"
        few = "1 attempt" if fewer == 1 else f"{fewer} attempts"
        yield f"Only {few} {how}: too few to tell what failures lack."
    elif not findings.differences:
        yield "Nothing that was recorded tells successes from failures reliably."
    for one in findings.differences:
        yield ended(_difference(one, findings))


def _difference(one: Difference, findings: Findings) -> str:
    successes = of(one.successes, findings.successes)
    failures = of(one.failures, findings.failures)
    more_often = one.successes * findings.failures > one.failures * findings.successes
    what = {
        Trait.TOOL: f"called {one.name}",
        Trait.TAG: f"had the label {one.name}",
        Trait.ERROR: f"met the error “{one.name}”",
    }[one.trait]
    if more_often:
        return (
            f"Successes {what} more often than failures: {successes} against {failures},"
            f" {sure(one.q_value)}"
        )
    return (
        f"Failures {what} more often than successes: {failures} against {successes},"
        f" {sure(one.q_value)}"
    )
