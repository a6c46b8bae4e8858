"""Which tools there are, in groups: every tool that is shown takes room in a context window.

A new group is a file in `mneme_mcp.tools` with its `TOOLS`, and a line here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    "core": Toolset(
        "recall, lessons, reflection on the record, context",
        ("recall", "learn", "reflect", "context"),
        default=True,
    ),
    "sessions": Toolset(
        "hand over, pick up, search sessions", ("sessions", "session_search"), default=True
    ),
    "reflections": Toolset("what was concluded from attempts", ("reflections",), default=True),
    "knowledge": Toolset("one-line experience, by repository", ("knowledge",), default=True),
    "memories": Toolset(
        "remember facts, search and delete them; patterns; statistics",
        ("remembering", "memories", "patterns", "database"),
    ),
    "skills": Toolset("attempts at tasks, and skills made of them", ("reflexion", "skills")),
    "causal": Toolset("what changes what, and experiments", ("causal", "experiments")),
    "learning": Toolset(
        "choose by what worked, learn from rewards",
        ("learning", "learning_metrics", "experience", "shaping", "transfer"),
    ),
    "proof": Toolset("recall with a signed certificate", ("certificates",)),
    "events": Toolset("record sessions and events, list events", ("events",)),
    "alerts": Toolset(
        "rules that watch the record, and what they triggered", ("alerts", "alert_history")
    ),
}

DEFAULT = tuple(name for name, toolset in TOOLSETS.items() if toolset.default)


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
        elif name in TOOLSETS:
            chosen.add(name)
        else:
            raise UnknownToolset(
                f"there is no toolset {name!r}; choose from {', '.join(TOOLSETS)}, default and all"
            )
    return tuple(name for name in TOOLSETS if name in chosen)


def tools_of(names: Iterable[str]) -> list[ToolSpec]:
    """The tools of these toolsets."""
    return [spec for name in names for spec in TOOLSETS[name].tools()]


def home_of(tool: str) -> str | None:
    """The toolset that holds a tool; None when there is none."""
    for name, toolset in TOOLSETS.items():
        if any(spec.name == tool for spec in toolset.tools()):
            return name
    return None
