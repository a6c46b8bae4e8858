"""How far the confidence of Recall holds: a table and a reliability diagram, as Markdown.

    .venv/bin/python benchmarks/confidence.py FOLDER [--mode lexical] [--embedder local:fp32]

Every store of the sets in FOLDER (see `benchmarks.question_sets`) becomes a tenant. Each question
is asked in its own store; in one of each other set, where it does not belong ("another set"); and
in another one of its own set ("the same kind").

    python -m benchmarks.confidence --fit --embedder e5 --locomo FILE --beam FILE --qmsum FILE

fits the weights for an embedder to these sets, prints them, and the same table under them; then,
for each set, how well it is told apart by the weights that the other sets give. Stores are those
of `benchmarks.ranking`, recorded once.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if not __package__:  # Run as a script.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mneme import MnemeClient
from mneme_server.features.recall.confidence import Fit

from benchmarks.confidence_fit import Seen, fitted, look
from benchmarks.question_sets import Store, read_stores
from benchmarks.ranking.files import add_options, files_of
from benchmarks.ranking.sets import READERS
from benchmarks.server import ROOT, Server

OWN, OTHER, SAME, UNANSWERED = "own", "another set", "the same kind", "own, no answer there"
BINS = 5
_BATCH = 500
_FEWEST_SETS = 3
"""To fit to: without one of them two must be left, whose questions are foreign to each other."""
_SAYS_NOTHING = (
    "the", "and so on", "what is it", "who are you", "asdfgh", "qwerty zxcvbn", "xkjd wpqz vbnm",
    "blorptang frumious", "lkjhlkjh 8sd7f6", "?!?!",
)  # fmt: skip


@dataclass(frozen=True)
class Answered:
    """One question's confidence: of which set it is, and where it was asked."""

    of: str
    where: str
    confidence: float


def measure(host: Server, stores: Sequence[Store], mode: str, seed: int) -> list[Answered]:
    """Record the stores, ask, and return every confidence."""
    chance = random.Random(seed)
    clients = [ingested(host, f"store-{n}", store) for n, store in enumerate(stores)]
    found = []
    for number, store in enumerate(stores):
        for question in store.questions:
            for where, place in _places(stores, number, question.answered, chance):
                sure = clients[place].recall(question.text, mode=mode, limit=1).confidence
                if sure is None:
                    raise SystemExit("this embedder is not fitted: its confidence is unset")
                found.append(Answered(store.of, where, sure))
    for of in dict.fromkeys(store.of for store in stores):
        some = clients[next(n for n, store in enumerate(stores) if store.of == of)]
        for text in _SAYS_NOTHING:
            sure = some.recall(text, mode=mode, limit=1).confidence or 0.0
            found.append(Answered(of, "nonsense", sure))
    return found


def _places(
    stores: Sequence[Store], own: int, answered: bool, chance: random.Random
) -> Iterator[tuple[str, int]]:
    yield (OWN if answered else UNANSWERED), own
    for of in sorted({store.of for store in stores} - {stores[own].of}):
        yield OTHER, chance.choice([n for n, store in enumerate(stores) if store.of == of])
    same = [n for n, store in enumerate(stores) if store.of == stores[own].of and n != own]
    if same:
        yield SAME, chance.choice(same)


def ingested(host: Server, tenant: str, store: Store) -> MnemeClient:
    """Record a store in a tenant of its own and return its client."""
    client = host.tenant(tenant)
    events: list[Any] = [
        {
            "id": said.id,
            "session_id": said.session,
            "event_type": said.event_type,
            "text": said.text,
            "name": said.name,
            "payload": {"role": said.role} if said.role else None,
        }
        for said in store.events
    ]
    for start in range(0, len(events), _BATCH):
        client.record_events(events[start : start + _BATCH], wait_indexed=True)
    return client


def auroc(above: Sequence[float], below: Sequence[float]) -> float:
    """Return how often one of `above` is larger than one of `below`; ties count half."""
    ranked = sorted([(value, 1) for value in above] + [(value, 0) for value in below])
    won, seen, place = 0.0, 0, 0
    while place < len(ranked):
        end = place
        while end < len(ranked) and ranked[end][0] == ranked[place][0]:
            end += 1
        ones = sum(flag for _, flag in ranked[place:end])
        zeros = end - place - ones
        won += ones * (seen + zeros / 2)
        seen += zeros
        place = end
    return won / (len(above) * len(below))


@dataclass(frozen=True)
class Bin:
    """The answers whose confidence lies in one part of the range."""

    said: float
    """Their mean confidence."""
    true: float
    """The share of them that were asked where they can be answered."""
    count: int


def bins_of(answers: Sequence[Answered]) -> list[Bin | None]:
    """Return the reliability of confidence in `BINS` bins, None for an empty one.

    Each set counts alike, and in each its own questions as much as those of other sets.
    """
    judged = [answer for answer in answers if answer.where in (OWN, OTHER)]
    sizes: dict[tuple[str, str], int] = {}
    for answer in judged:
        sizes[answer.of, answer.where] = sizes.get((answer.of, answer.where), 0) + 1
    bins: list[Bin | None] = []
    for number in range(BINS):
        inside = [a for a in judged if min(int(a.confidence * BINS), BINS - 1) == number]
        weights = [1 / sizes[a.of, a.where] for a in inside]
        if not inside:
            bins.append(None)
            continue
        said = sum(w * a.confidence for w, a in zip(weights, inside, strict=True))
        true = sum(w for w, a in zip(weights, inside, strict=True) if a.where == OWN)
        bins.append(Bin(said / sum(weights), true / sum(weights), len(inside)))
    return bins


def as_markdown(answers: Sequence[Answered]) -> str:
    """Return the table of the sets, and the diagram."""
    lines = [
        "| set | own: median | 10 % | another set: median | 90 % | AUROC | the same kind: AUROC"
        " | no answer there: AUROC | nonsense: highest |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    sets = dict.fromkeys(answer.of for answer in answers)
    lines += [_row(of, [answer for answer in answers if answer.of == of]) for of in sets]
    lines += ["", "```text", "said   true", *map(_bar, bins_of(answers)), "```"]
    return "\n".join(lines)


def _row(of: str, answers: Sequence[Answered]) -> str:
    by = {where: [a.confidence for a in answers if a.where == where] for where in
          (OWN, OTHER, SAME, UNANSWERED, "nonsense")}  # fmt: skip
    own, other = by[OWN], by[OTHER]
    cells = [
        f"{of} ({len(own)})",
        f"{statistics.median(own):.2f}",
        f"{_quantile(own, 0.1):.2f}",
        f"{statistics.median(other):.3f}",
        f"{_quantile(other, 0.9):.2f}",
        f"{auroc(own, other):.3f}",
        f"{auroc(own, by[SAME]):.3f}" if by[SAME] else "–",
        f"{auroc(own, by[UNANSWERED]):.3f}" if by[UNANSWERED] else "–",
        f"{max(by['nonsense']):.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[round(share * (len(values) - 1))]


def _bar(found: Bin | None) -> str:
    if found is None:
        return "  –"
    return f"{found.said:.2f}   {found.true:.2f}  {'█' * round(found.true * 40):40}  {found.count}"


def fit(files: Mapping[str, Path], embedder: str, seed: int) -> str:
    """Fit the weights to sets, and return what they are and do."""
    seen = look(
        ROOT / ".cache" / "bench", files, embedder, _SAYS_NOTHING,
        lambda text: print(text, file=sys.stderr),
        seed=seed, own=OWN, other=OTHER, same=SAME,
    )  # fmt: skip
    found = fitted(seen, OWN, OTHER)
    lines = [repr(found), "", as_markdown(_under(found, seen)), ""]
    for left_out in files:
        others = fitted([one for one in seen if one.of != left_out], OWN, OTHER)
        judged = _under(others, [one for one in seen if one.of == left_out])
        own, other = ([a.confidence for a in judged if a.where == w] for w in (OWN, OTHER))
        lines.append(f"fitted without {left_out}: AUROC {auroc(own, other):.3f} on it")
    return "\n".join(lines)


def _under(weights: Fit, seen: Sequence[Seen]) -> list[Answered]:
    return [Answered(one.of, one.where, one.sure(weights)) for one in seen]


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, nargs="?", help="with a folder for each set")
    parser.add_argument("--fit", action="store_true", help="fit the weights to the sets named here")
    add_options(parser)
    parser.add_argument("--mode", default="hybrid", choices=("hybrid", "dense", "lexical"))
    parser.add_argument("--embedder", default="local", help="of the server, e.g. local:fp32")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    if arguments.fit:
        files = {of: file for of, file in files_of(arguments).items() if of in READERS}
        if len(files) < _FEWEST_SETS:
            parser.error(f"name the files of {_FEWEST_SETS} sets or more, of {', '.join(READERS)}")
        print(fit(files, arguments.embedder, arguments.seed))
        return 0
    if arguments.folder is None:
        parser.error("name a folder with sets, or --fit")
    try:
        stores = read_stores(arguments.folder)
    except FileNotFoundError as error:
        print(f"confidence: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="mneme-confidence-") as folder:
        host = Server(Path(folder) / "data", {"embedder": arguments.embedder})
        host.start()
        try:
            print(as_markdown(measure(host, stores, arguments.mode, arguments.seed)))
        finally:
            host.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
