"""The embedding engine against sentence-transformers, and what 8 bits cost in recall."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from benchmarks import locomo
from benchmarks.context import Context
from benchmarks.engines import PEER
from benchmarks.locomo_file import read_conversations
from benchmarks.report import NO_BUDGET, Row, at_least, at_most, milliseconds
from benchmarks.retrieval import means
from benchmarks.server import ROOT
from benchmarks.texts import events

RATIO, RECALL_LOSS, RECALL = 4.0, 0.01, 0.79


def run(context: Context) -> list[Row]:
    """Measure throughput in one run, and LoCoMo's recall where the file is given."""
    context.say("embedding: engines side by side")
    texts, source = _texts(context)
    rows = _throughput(context, texts, source)
    if context.locomo is not None:
        rows += _recall(context)
    return rows


def _texts(context: Context) -> tuple[list[str], str]:
    count = context.sizes.embed_texts
    if context.locomo is None:
        return [event.text for event in events(count, 9)], "made-up texts"
    conversations = read_conversations(context.locomo)
    turns = [t.text for c in conversations for session in c.sessions for t in session.turns]
    return turns[:: max(1, len(turns) // count)][:count], "LoCoMo's turns"


def _throughput(context: Context, texts: list[str], source: str) -> list[Row]:
    asked = {"texts": texts, "rounds": context.sizes.rounds}
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.engines"],
        input=json.dumps(asked), capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    if answer.returncode:
        raise RuntimeError(f"the engines could not be measured:\n{answer.stderr[-2000:]}")
    found = json.loads(answer.stdout)
    rates = found["texts_per_second"]
    ratio = statistics.median(a / b for a, b in zip(rates["int8"], rates[PEER], strict=True))
    mean_length = statistics.fmean(map(len, texts))
    rows = [
        Row(
            "embedding, int8",
            f"≥ {RATIO:.0f} × {PEER}",
            f"{ratio:.1f} ×: {statistics.median(rates['int8']):,.0f} texts/s against"
            f" {statistics.median(rates[PEER]):,.0f}",
            at_least(ratio, RATIO),
            f"{source}, {mean_length:.0f} characters on average; {len(texts)} at once, in turns,"
            f" median of {len(rates['int8'])} ratios",
            {"ratio": ratio},
        )
    ]
    for name in ("int8", "fp32", PEER):
        times = found["one_text_ms"][name]
        rows.append(
            Row(
                f"embedding engine: {name}",
                "",
                f"{statistics.median(rates[name]):,.0f} texts/s; one text"
                f" {milliseconds(statistics.median(times))}",
                NO_BUDGET,
                f"cosine to {PEER}: {found['cosine_mean'][name]:.4f} on average,"
                f" {found['cosine_least'][name]:.3f} at worst",
                {
                    "texts_per_second": statistics.median(rates[name]),
                    "one_text_p50_ms": statistics.median(times),
                    "cosine_mean": found["cosine_mean"][name],
                    "cosine_least": found["cosine_least"][name],
                },
            )
        )
    return rows


def _recall(context: Context) -> list[Row]:
    assert context.locomo is not None
    conversations = read_conversations(context.locomo)
    results = {}
    for embedder in ("local", "local:fp32"):
        context.say(f"embedding: LoCoMo with {embedder}")
        modes = locomo.MODES if embedder == "local" else ("hybrid",)
        with locomo.own_server(embedder) as host:
            outcome = locomo.measure(host, conversations, modes, lambda _name, _count: None)
        for mode, run in outcome.runs.items():
            results[embedder, mode] = means(run.judged)
    best = results["local", "hybrid"]
    loss = results["local:fp32", "hybrid"]["recall@10"] - best["recall@10"]
    asked = sum(len(conversation.questions) for conversation in conversations)
    return [
        Row(
            "LoCoMo, turns, recall@10",
            f"≥ {RECALL}",
            f"{best['recall@10']:.3f}; dense alone {results['local', 'dense']['recall@10']:.3f},"
            f" words alone {results['local', 'lexical']['recall@10']:.3f}",
            at_least(best["recall@10"], RECALL),
            f"{len(conversations)} conversations, {asked} questions; sessions"
            f" {best['session recall@10']:.3f}",
            {f"hybrid {name}": value for name, value in best.items()},
        ),
        Row(
            "LoCoMo, what int8 costs",
            f"≤ {RECALL_LOSS} of recall@10",
            f"{loss:+.4f} less than fp32",
            at_most(loss, RECALL_LOSS),
            "the same with MNEME_EMBEDDER=local:fp32",
            {"loss": loss},
        ),
    ]
