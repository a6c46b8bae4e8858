"""What the pages show in tests and pictures: the sample sessions, and something of every kind."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mneme import MnemeClient

SAMPLES = Path(__file__).parents[2] / "samples" / "invoices" / "sessions.jsonl"
PATIENCE_S = 60.0

Say = Callable[[str], str]
"""Changes every text before it is stored."""


def plainly(text: str) -> str:
    """Store what is meant."""
    return text


def hostile(text: str) -> str:
    """Store what would be a script wherever it is taken for HTML."""
    return (
        f'{text}"\'><img src=x onerror="window.broken=1"><script>window.broken=1</script>'
        "<svg onload=window.broken=1></svg><a href=javascript:window.broken=1>x</a>"
        " javascript:window.broken=1 {{7*7}} </textarea></title>"
    )


def import_samples(address: str, key: str, folder: Path) -> None:
    """Import the sample sessions as people do, as if the last of them had been yesterday."""
    lines = [json.loads(line) for line in SAMPLES.read_text().splitlines()]
    newest = max(datetime.fromisoformat(line["ended_at"]) for line in lines if "status" in line)
    shift = datetime.now(UTC) - timedelta(hours=20) - newest
    for line in lines:
        for name in _TIMES & line.keys():
            line[name] = (datetime.fromisoformat(line[name]) + shift).isoformat()
    file = folder / SAMPLES.name
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = (Path(sysconfig.get_path("scripts")) / "mneme", "--address", address, "import", file)
    done = subprocess.run(
        command,
        env=os.environ | {"MNEME_API_KEY": key},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def fill(client: MnemeClient, say: Say = plainly) -> None:
    """Store something of every kind that a page shows, in tenant `default`."""
    _lessons(client, say)
    _experience(client, say)
    _learning(client, say)
    _alerts(client, say)
    client.create_tenant("acme", display_name=say("Acme")[:200])
    client.create_api_key("acme", say("Nightly build")[:100], scopes=["read", "write"])


def hostile_session(client: MnemeClient) -> str:
    """Record a session all of whose texts are scripts; return its id."""
    session = "s<img src=x onerror=window.broken=1>"
    client.start_session(
        session_id=session,
        agent_id=hostile("agent")[:200],
        agent_name=hostile("Agent")[:200],
        user_id=hostile("user")[:200],
        project=hostile("project")[:200],
        tags=["<script>window.broken=1</script>"],
        metadata={"title": hostile("title"), hostile("key")[:60]: [hostile("value")]},
    )
    common: dict[str, Any] = {"session_id": session}
    client.record_events(
        [
            common
            | {"event_type": "message", "text": hostile("hello"), "payload": {"role": "user"}},
            common
            | {
                "event_type": "tool_call", "name": hostile("tool")[:200], "call_id": "c1",
                "payload": {"arguments": {hostile("argument"): hostile("value")}},
            },
            common
            | {
                "event_type": "tool_error", "name": hostile("tool")[:200], "call_id": "c1",
                "text": hostile("it failed"), "payload": {"error": hostile("error")},
            },
            common
            | {
                "event_type": "llm_response", "name": hostile("model")[:200], "cost_usd": 0.01,
                "text": hostile("answer"), "payload": {"model": hostile("model")[:200]},
            },
        ]
    )  # fmt: skip
    client.end_session(session, status="error")
    return session


def wait_until_indexed(client: MnemeClient) -> None:
    """Wait until all that was stored can be found."""
    until = time.monotonic() + PATIENCE_S
    while client.get_stats().tenant.pending_count:
        assert time.monotonic() < until, "the embedder does not get done"
        time.sleep(0.02)


def _lessons(client: MnemeClient, say: Say) -> None:
    for title, content, category, importance in _LESSONS:
        client.create_lesson(
            say(title), say(content), category=say(category)[:100], importance=importance,
            project="invoices", tags=[say("production")[:100]],
            context={say("where")[:60]: say("the invoices service")},
        )  # fmt: skip
    for attempt, outcome in enumerate(("failure", "partial", "success"), start=1):
        client.create_reflection(
            "inv-02-rounding", say("Find where cents get lost on invoices"),
            project="invoices", attempt_number=attempt, outcome=outcome,  # type: ignore[arg-type]
            what_worked=[say("Adding up in whole cents")] if attempt > 1 else [],
            what_did_not_work=[say("Rounding every line by itself")],
            next_strategy=say("Round the sum once"), tags=[say("money")[:100]],
        )  # fmt: skip
    client.create_knowledge(
        say("invoices")[:200], "error", context=say("Running migrations on a large table"),
        command=say("alembic upgrade head"), lesson=say("Set lock_timeout first"),
        success_rate={"successes": 4, "tries": 5}, tags=[say("database")[:100]],
    )  # fmt: skip


def _experience(client: MnemeClient, say: Say) -> None:
    old = client.remember(say("The nightly export runs at 2 o'clock"), user_id="maintainer")
    client.remember(
        say("The nightly export runs at 4 o'clock"), user_id="maintainer",
        supersedes=[old.memory.id], tags=[say("schedule")[:100]],
        metadata={say("source")[:60]: say("the maintainer")},
    )  # fmt: skip
    for number, success in enumerate((True, True, False)):
        client.create_episode(
            task=say(f"Repair the flaky build, attempt {number + 1}"), input=say("The log"),
            output=say("A fixed order of tests"), critique=say("Look at shared fixtures first"),
            reward=0.9 if success else 0.1, success=success, tools=[say("run_tests")[:200]],
            project="invoices", episode_id=f"episode-{number}", tags=[say("ci")[:100]],
        )  # fmt: skip
    skills = [
        client.create_skill(
            say(name)[:200], description=say(description), project="invoices",
            source_episode_ids=["episode-0"], code=say("pytest -q --randomly"),
        ).skill.id
        for name, description in _SKILLS
    ]  # fmt: skip
    client.link_skills(skills[0], skills[1], relationship="prerequisite")
    client.link_skills(skills[0], skills[2], relationship="alternative")
    client.record_skill_use(skills[0], success=True)
    client.create_pattern(
        say("Amount of money")[:200], description=say("Euros with cents"),
        regex={"expression": r"\d+[.,]\d{2} ?(EUR|€)"},
    )  # fmt: skip


def _learning(client: MnemeClient, say: Say) -> None:
    client.start_learning_session(
        "q_learning", session_id="choose-a-fix",
        state_space={"discrete": {"labels": ["small", "large"]}},
        action_space={"discrete": {"labels": ["patch", say("rewrite")[:200]]}}, seed=7,
    )  # fmt: skip
    actions = ("patch", say("rewrite")[:200])
    steps: list[Any] = [
        {
            "state": {"label": "small" if number % 2 else "large"},
            "action": {"label": actions[number % 3 == 0]},
            "reward": 1.0 if (number % 2 == 1) != (number % 3 == 0) else 0.2,
            "terminated": True,
            # As often as it is done: other probabilities would be none to judge a policy by.
            "probability": 1 / 3 if number % 3 == 0 else 2 / 3,
        }
        for number in range(240)
    ]
    client.record_experience("choose-a-fix", steps[:220])
    for step in steps[220:]:
        client.feedback(session_id="choose-a-fix", **step)


def _alerts(client: MnemeClient, say: Say) -> None:
    # Rules that cannot trigger: what they recorded then would be in other pages' figures.
    client.create_alert_rule(
        say("The month's budget")[:200], "cost_exceeds", threshold=1_000_000, window_minutes=43_200,
        scope={"project": say("invoices")[:200], "tags": [say("paid")[:100]]},
    )  # fmt: skip
    client.create_alert_rule(
        say("The disk fills up")[:200], "error_pattern_exceeds", pattern=say("no space left")[:300],
        threshold=3, enabled=False, window_minutes=15,
    )  # fmt: skip


_TIMES = {"timestamp", "started_at", "ended_at"}
_LESSONS: tuple[tuple[str, str, str, Any], ...] = (
    (
        "Large tables change in steps",
        "Add the column as nullable, fill it in small batches while watching the replica, and set "
        "lock_timeout in every migration.",
        "database",
        "critical",
    ),
    (
        "A repeated call must be recognised as a repeat",
        "Derive an idempotency key from the order, store it before the first attempt, and send it "
        "with every retry.",
        "reliability",
        "high",
    ),
    (
        "Never add a sleep to a flaky test",
        "A test that fails now and then shows a bug: an order that is not defined, a fixed port, a "
        "full disk. Find it; see https://example.com/flaky for how.",
        "testing",
        "normal",
    ),
)
_SKILLS = (
    ("Repair a flaky test", "Find what tests share, and give each its own."),
    ("Run one test many times", "Repeat it until it fails, with the seed shown."),
    ("Quarantine a test", "Take it out of the gate for a day, with a note."),
)
