"""The commands there are: what each is for, and the module that it is in.

To import them all takes longer than most of them take to run. So the root lists them from the
table below, and imports the module of the one that runs.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from importlib import import_module
from typing import Any, NamedTuple

from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from mneme.cli.app import App


class Listed(NamedTuple):
    """A command, or a group of them, as the root's help lists it.

    `home` is the module in `mneme.cli`, and `help` the first paragraph of its own help. A command's
    module has a function `register`, which adds it to a root; a group's has the group, as `app`.
    """

    home: str
    help: str
    group: bool = False


COMMANDS = {
    "remember": Listed("remember", "Remember something, and print the memory's id."),
    "recall": Listed("recall", "Recall what bears on a question, best first."),
    "reflect": Listed("reflect", "Show patterns in what agents did."),
    "context": Listed(
        "context",
        "Show what bears on a topic, best first: memories, sessions, lessons, attempts and skills.",
    ),
    "profile": Listed("profile", "Show what is known of a user: what is pinned, stable, recent."),
    "timeline": Listed(
        "context", "Show sessions by time, latest first, with the earlier ones each builds on."
    ),
    "wake-up": Listed(
        "wake_up", "Show what the last session left, what bears on it, and what to do next."
    ),
    "sleep": Listed("sleep", "Leave a handover for the next session, and end this one."),
    "agents": Listed("agents", "List the agents seen so far."),
    "status": Listed("status", "Show the server, its model, and what your tenant holds."),
    "open": Listed("dashboard", "Open the dashboard in your browser, signed in with your key."),
    "import": Listed(
        "importing",
        "Import what agents did elsewhere: transcripts, session files, exports, an AgentDB.",
    ),
    "log": Listed("knowledge", "Append what was learned to the project's log. Needs no server."),
    "certify": Listed(
        "proof", "Recall with a certificate: a signed proof of what was stored and returned."
    ),
    "verify": Listed(
        "proof", "Check a certificate offline: without a server, and without its database."
    ),
    "audit": Listed(
        "proof", "Check that the log only grew since the last audit, and remember its head."
    ),
    "forget": Listed(
        "forget",
        "Erase what is kept of a user, agent or session, or single things, and what follows from"
        " it.",
    ),
    "call": Listed("call.command", "Call any RPC of the API; it answers in JSON."),
    "memories": Listed(
        "memories",
        "What is remembered of users and projects; `mneme remember` stores it.",
        group=True,
    ),
    "episodes": Listed("episodes", "What was attempted, and what came of it.", group=True),
    "skills": Listed(
        "skills",
        "What works for a kind of task, how often, and what belongs together.",
        group=True,
    ),
    "causal": Listed(
        "causal", "Cause and effect: edges, chains, and what episodes show.", group=True
    ),
    "alerts": Listed(
        "alerts", "Alerts: rules that watch what is recorded, and whom they notify.", group=True
    ),
    "experiments": Listed(
        "experiments", "Experiments: chance decides who gets a cause.", group=True
    ),
    "lessons": Listed("lessons", "What agents should remember next time.", group=True),
    "reflections": Listed("reflections", "What agents concluded from their attempts.", group=True),
    "knowledge": Listed(
        "knowledge", "The knowledge log: what was learned, by project.", group=True
    ),
    "learning": Listed(
        "learning", "Learn from rewards which action works in which situation.", group=True
    ),
    "sessions": Listed("sessions", "What agents did, run by run.", group=True),
    "events": Listed("events", "What happened, event by event.", group=True),
    "hooks": Listed(
        "hooks",
        "Let a coding agent remember by itself: at a session's start, end and compaction.",
        group=True,
    ),
    "proof": Listed(
        "proof",
        "The tenant's log of everything that can be recalled: its head and its keys.",
        group=True,
    ),
    "operations": Listed(
        "operations",
        "Long work on the server: what runs, how far it is, and how it ended.",
        group=True,
    ),
    "admin": Listed("admin", "For the server's operator: tenants, API keys, backups.", group=True),
}


class Commands(TyperGroup):
    """The root of the command line: what is listed is there, what runs is imported."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, listed in COMMANDS.items():
            self.add_command(TyperCommand(name, help=listed.help))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that the line names, and return it."""
        self.load(args[0])
        return super().resolve_command(ctx, args)

    def load(self, name: str) -> None:
        """Put the command of this name where only its line of help was; none has it: do nothing."""
        if name in COMMANDS:
            self.add_command(_imported(name, COMMANDS[name])[name])


def _imported(name: str, listed: Listed) -> MutableMapping[str, Any]:
    module = import_module(f"mneme.cli.{listed.home}")
    root = App()
    if listed.group:
        root.add_typer(module.app, name=name)
    else:
        module.register(root)
    return get_group(root).commands
