"""The demo's part about proof: a certificate is made, checked, broken and refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

from demo_support import BIN, Report, Server
from mneme import MnemeClient

# What is proved, and the question.
PROVED = ("Ann wants her invoices by post", "Ann's office moved to Berlin in May")
PROVED_QUESTION = "how does Ann get her invoices?"


def prove(report: Report, server: Server) -> None:
    """Recall with a certificate, check it without the server, break it, and check it again."""
    report.chapter("Proof: what was recalled, shown to somebody who trusts nobody")
    with MnemeClient(server.address, api_key="") as client:
        for text in PROVED:
            client.create_memory(text, user_id="ann")
        made = client.recall_with_certificate(PROVED_QUESTION, limit=2)
        key = client.list_log_keys().keys[-1].verifier_key
    report.question(PROVED_QUESTION)
    report.answers(
        (one.score, one.source_type, f"leaf {one.leaf_index}", one.text) for one in made.results
    )
    text = made.certificate.json
    report.say(f"Its certificate has {len(text)} characters, and the id {made.certificate.id}.")
    file = server.data.parent / "certificate.json"
    file.write_text(text)
    report.check(_verify(report, file, key) == 0, "the certificate verifies offline")
    file.write_text(text.replace("by post", "by mail"))
    report.say("Somebody writes “mail” where it said “post”:")
    report.check(_verify(report, file, key) == 1, "the certificate that was changed is refused")


def _verify(report: Report, file: Path, key: str) -> int:
    """Run `mneme verify`, which needs no server; show what it says, and return its exit code."""
    command = [str(BIN / "mneme"), "verify", str(file), "--key", key]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report.say("$ mneme verify certificate.json --key KEY")
    for line in (done.stdout + done.stderr).splitlines():
        report.say(f"  {line}")
    return done.returncode
