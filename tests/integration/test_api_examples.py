"""The examples of docs/api, sent to a real server in their order."""

from __future__ import annotations

import json
from difflib import unified_diff
from pathlib import Path

from support.answers import ANSWERS, answers_of, as_text, masked
from support.api import METHODS
from support.examples import EXAMPLES, short_name
from support.server import local_server

EMPTY = {
    "AdminService.DeleteTenant",
    "AlertService.ListAlertHistory",  # It takes more than the examples to trigger a rule.
    "LearningService.DeleteLearningSession",
}
# What the examples before them make them find.
FOUND = {
    "RecallService.Recall": "results",
    "LearnService.SearchLessons": "results",
    "LearnService.SearchReflections": "results",
    "LearnService.SearchKnowledge": "entries",
    "ContextService.SearchSessions": "results",
    "ContextService.GetContext": "sessions",
    "ContextService.GetTimeline": "entries",
    "ReflectService.Reflect": "metadata",
}


def test_every_rpc_has_an_example() -> None:
    rpcs = {short_name(rpc) for rpc in METHODS}
    missing, unknown = rpcs - set(EXAMPLES), set(EXAMPLES) - rpcs
    assert not missing, f"write an example of {sorted(missing)} into scripts/api_examples.json"
    assert not unknown, f"scripts/api_examples.json has examples of no RPC: {sorted(unknown)}"


def test_the_examples_run_in_their_order_and_are_answered_as_before(tmp_path: Path) -> None:
    """The answers are kept in tests/fixtures/api_answers.json.

    An answer that is meant to change is written anew with `make generate`.
    """
    with local_server(tmp_path / "data") as server:
        answers = answers_of(server.keys.admin)
    for name, answer in answers.items():
        assert name in EMPTY or answer.ByteSize(), name
        assert name not in FOUND or getattr(answer, FOUND[name]), name
    kept, now = json.loads(ANSWERS.read_text()), masked(answers)
    again = "if it is meant: make generate"
    assert set(kept) == set(now), again
    for name in now:
        texts = (as_text(one).splitlines() for one in (kept[name], now[name]))
        changed = "\n".join(unified_diff(*texts, "kept", "now", lineterm=""))
        assert not changed, f"{name} is answered in another way; {again}\n{changed}"
