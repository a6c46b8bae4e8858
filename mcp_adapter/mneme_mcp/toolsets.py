"""Which tools there are, in groups: every tool that is shown takes room in a context window.

A new group is a file in `mneme_mcp.tools` with its `TOOLS`, and a line here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from mneme_mcp.tool import ToolSpec


@dataclass(frozen=True, slots=True)
class Toolset:
    """A group of tools.

    Args:
        about: what it is for, in a line.
        modules: the files that hold its tools.
        default: whether it is shown when nobody chooses.
    """

    about: str
    modules: Sequence[str]
    default: bool = False

    def tools(self) -> list[ToolSpec]:
        """Its tools, in the order of their files."""
        found: list[ToolSpec] = []
        for name in self.modules:
            found += import_module(f"mneme_mcp.tools.{name}").TOOLS
        return found


TOOLSETS: Mapping[str, Toolset] = {
    "plain": Toolset(
        "remember, recall, read, correct and forget; context for a task",
        ("plain_remember", "plain_recall", "plain_items", "plain_context"),
        default=True,
    ),
    "sessions": Toolset("hand over, pick up, search sessions", ("sessions", "session_search")),
    "profile": Toolset("what is known of a user, without a question", ("profile",)),
    "lessons": Toolset("a notebook of lessons", ("learn",)),
    "reflection": Toolset(
        "what the record shows, what attempts taught, what changes what",
        ("reflect", "reflections", "knowledge", "causal", "experiments"),
    ),
    "skills": Toolset("attempts at tasks, and skills made of them", ("reflexion", "skills")),
    "learning": Toolset(
        "choose by what worked, learn from rewards",
        ("learning", "learning_metrics", "experience", "shaping", "transfer"),
    ),
    "proof": Toolset("recall with a signed certificate", ("certificates",)),
    "operations": Toolset(
        "the record of events, alerts, patterns in memories, statistics",
        ("events", "alerts", "alert_history", "patterns", "database"),
    ),
    "compat": Toolset(
        "every tool under the names of AgentLens and AgentDB",
        (
            "recall", "learn", "reflect", "context", "sessions", "session_search", "reflections",
            "knowledge", "remembering", "memories", "patterns", "database", "reflexion", "skills",
            "causal", "experiments", "learning", "learning_metrics", "experience", "shaping",
            "transfer", "certificates", "events", "alerts", "alert_history",
        ),
    ),
}  # fmt: skip

EARLIER: Mapping[str, Toolset] = {
    "core": Toolset("", ("recall", "learn", "reflect", "context")),
    "reflections": Toolset("", ("reflections",)),
    "knowledge": Toolset("", ("knowledge",)),
    "memories": Toolset("", ("remembering", "memories", "patterns", "database")),
    "causal": Toolset("", ("causal", "experiments")),
    "events": Toolset("", ("events",)),
    "alerts": Toolset("", ("alerts", "alert_history")),
}
"""What toolsets were called before, each with the tools that it had: hosts are configured so."""

DEFAULT = tuple(name for name, toolset in TOOLSETS.items() if toolset.default)
SHOWN_BEFORE = ("core", "sessions", "reflections", "knowledge")
"""The toolsets that were the default ones before: beside the plain tools, theirs are answered when
they are called by name, though they are not listed."""
_ALL = {**TOOLSETS, **EARLIER}
_PLAIN_NAMES = {
    "agentlens_recall": "mneme_recall",
    "agentlens_context": "mneme_context",
    "agentdb_search": "mneme_recall",
    "agentdb_insert": "mneme_remember",
}
"""Tools that descriptions speak of, and those that do the same where they are not shown."""


class UnknownToolset(ValueError):
    """There is no toolset of that name."""


def parse(text: str) -> tuple[str, ...]:
    """The toolsets that a setting names, in the table's order; empty: the default ones.

    Raises:
        UnknownToolset: it names one that does not exist.
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if not names:
        return DEFAULT
    chosen: set[str] = set()
    for name in names:
        if name == "all":
            chosen |= set(TOOLSETS)
        elif name == "default":
            chosen |= set(DEFAULT)
        elif name in _ALL:
            chosen.add(name)
        else:
            raise UnknownToolset(
                f"there is no toolset {name!r}; choose from {', '.join(TOOLSETS)}, default and all"
            )
    return tuple(name for name in _ALL if name in chosen)


def tools_of(names: Iterable[str]) -> list[ToolSpec]:
    """The tools of these toolsets, each once."""
    specs = [spec for name in names for spec in _ALL[name].tools()]
    return list({spec.name: spec for spec in specs}.values())


def shown(names: Iterable[str]) -> list[ToolSpec]:
    """The tools of these toolsets as they are shown: each speaks only of others that are, too."""
    specs = tools_of(names)
    listed = {spec.name for spec in specs}
    others = {
        name: plain
        for name, plain in _PLAIN_NAMES.items()
        if name not in listed and plain in listed
    }
    return [
        replace(
            spec,
            description=_renamed(spec.description, others),
            if_missing=_renamed(spec.if_missing, others),
        )
        for spec in specs
    ]


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        text = re.sub(rf"\b{name}\b", other, text)
    return text


def unlisted(names: Sequence[str]) -> list[ToolSpec]:
    """The tools that are answered with these toolsets without being listed."""
    listed = {spec.name for spec in tools_of(names)}
    if not set(DEFAULT) <= set(names):
        return []
    return [spec for spec in tools_of(SHOWN_BEFORE) if spec.name not in listed]


def home_of(tool: str) -> str | None:
    """The toolset that holds a tool; None when there is none."""
    for name, toolset in TOOLSETS.items():
        if any(spec.name == tool for spec in toolset.tools()):
            return name
    return None
