"""`mneme knowledge`: the logs of a folder on their way to a server."""

from __future__ import annotations

import json
from pathlib import Path

from mneme.messages import CreateKnowledgeResponse
from mneme.v1 import knowledge_pb2 as pb
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer


def test_a_line_that_no_request_can_hold_is_reported_and_the_others_are_sent(
    served: ScriptedServer, tmp_path: Path
) -> None:
    served.on("CreateKnowledge", CreateKnowledgeResponse())
    line = {"repo": "r", "event_type": "error", "context": "c", "lesson": "first"}
    lines = [
        json.dumps(line),
        json.dumps(line | {"lesson": "half \ud800"}),
        json.dumps(line | {"timestamp": "0001-01-01T00:00:00+14:00"}),
        json.dumps(line)[:-1] + ', "x": ' + "[" * 5_000 + "]" * 5_000 + "}",
        json.dumps(line | {"lesson": "last"}),
    ]
    log = tmp_path / "logs" / "r.jsonl"
    log.parent.mkdir()
    log.write_text("\n".join(lines) + "\n")
    result = mneme("knowledge", "sync", "--folder", str(tmp_path))
    assert [seen.request.lesson for seen in served.seen] == ["first", "last"]
    assert result.code == 1
    assert result.out == "2 logged, 0 already there, 3 broken\n"
    for number, said in ((2, "Unicode"), (3, "outside the years"), (4, "nested too deep")):
        assert any(f"{log}:{number}: " in one and said in one for one in result.err.splitlines())


ENTRY = pb.KnowledgeEntry(
    id="k", project="shop", type=pb.KNOWLEDGE_TYPE_ERROR, context="npm", lesson="check first",
    success_rate=pb.SuccessRate(successes=9, tries=10), etag="e1",
)  # fmt: skip


def test_an_entry_is_listed_and_shown(served: ScriptedServer) -> None:
    served.on("ListKnowledge", pb.ListKnowledgeResponse(entries=[ENTRY], total_size=1))
    served.on("GetKnowledge", pb.GetKnowledgeResponse(entry=ENTRY))
    assert "check first" in mneme("knowledge", "list", "--project", "shop", "--type", "error").out
    chosen = served.last("ListKnowledge").filter
    assert (chosen.project, chosen.type) == ("shop", pb.KNOWLEDGE_TYPE_ERROR)
    shown = mneme("knowledge", "get", "k").out
    for words in ("check first", "9/10", "e1"):
        assert words in shown


def test_an_entry_is_changed_and_deleted_for_good(served: ScriptedServer) -> None:
    served.on("UpdateKnowledge", pb.UpdateKnowledgeResponse(entry=ENTRY))
    served.on("DeleteKnowledge", pb.DeleteKnowledgeResponse(entry=ENTRY))
    changed = mneme("knowledge", "update", "k", "--lesson", "new", "--etag", "e1")
    assert changed.out == "updated k\n"
    request = served.last("UpdateKnowledge")
    assert (request.entry.lesson, list(request.update_mask.paths)) == ("new", ["lesson"])
    assert "for good?" in mneme("knowledge", "delete", "k", stdin="n\n").err
    assert not served.calls("DeleteKnowledge")
    assert mneme("knowledge", "delete", "k", "--yes").out == "deleted k\n"
