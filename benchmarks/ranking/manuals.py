"""Questions and answers of manuals, as Debian packages them, in BEAM's form.

    apt install debian-faq git-doc perl-doc python3-doc
    python -m benchmarks.ranking.manuals FILE
    python -m benchmarks.ranking --beam FILE

Each manual is one store: its answers are what an assistant said, a chapter a session, and its
questions are asked. They were never looked at when the ranking was made. Beside them, names in code
are asked for that a single answer holds ("how does File::Temp work").

The texts are not part of this project; their packages say what they may be used for.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SHORTEST = 40
"""Characters of an answer; what is shorter only points elsewhere."""
_MOST = 60_000
_NAMES = 60
"""Names asked for of each manual."""
_NAME = re.compile(r"\b[A-Za-z]\w+(?:(?:::|\.)[A-Za-z_]\w+)+\b|\b[a-z]+_\w+\b|\b[a-z]+[A-Z]\w+\b")
_ASKED_AS = ("{}", "how does {} work", "where was {} explained?", "error with {}")
_BLANK = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Answered:
    """A question of a manual, and its answer."""

    chapter: str
    question: str
    answer: str


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.ranking.manuals", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("file", type=Path, help="the JSON to write")
    given = parser.parse_args(argv)
    stores = []
    for name, (pattern, read) in _MANUALS.items():
        files = sorted({file.resolve() for file in Path("/").glob(pattern)})
        if not files:
            print(f"{name}: left out, there is no /{pattern}", file=sys.stderr)
            continue
        stores.append(_store(name, [one for file in files for one in read(file)]))
    if not stores:
        print("none of the manuals is installed; --help names the packages", file=sys.stderr)
        return 1
    given.file.write_text(json.dumps(stores), encoding="utf-8")
    return 0


def _store(name: str, answered: Sequence[Answered]) -> Mapping[str, Any]:
    messages = [
        {"id": number, "session": one.chapter, "day": "", "role": "assistant", "text": one.answer}
        for number, one in enumerate(answered, 1)
    ]
    asked = [
        {"kind": name, "question": one.question, "evidence": [number]}
        for number, one in enumerate(answered, 1)
    ]
    return {"id": name, "messages": messages, "questions": [*asked, *_names(answered)]}


def _names(answered: Sequence[Answered]) -> Iterator[Mapping[str, Any]]:
    """Yield questions for names that one answer alone holds, evenly spread."""
    held = [set(_NAME.findall(one.answer)) for one in answered]
    count = Counter(name for names in held for name in names)
    alone = [
        (name, number)
        for number, names in enumerate(held, 1)
        for name in sorted(names)
        if count[name] == 1 and sum(name.lower() in one.answer.lower() for one in answered) == 1
    ]
    for place, (name, number) in enumerate(alone[:: max(1, len(alone) // _NAMES)]):
        question = _ASKED_AS[place % len(_ASKED_AS)].format(name)
        yield {"kind": "names", "question": question, "evidence": [number]}


def _pod(file: Path) -> Iterator[Answered]:
    """Read a chapter of Perl's FAQ."""
    text = file.read_text(encoding="utf-8", errors="replace")
    for part in re.split(r"^=head[12] ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n\n")
        blocks = [block for block in _BLANK.split(rest) if not block.startswith("=")]
        question, answer = _without_codes(heading), _without_codes("\n\n".join(blocks))
        if question.endswith("?"):
            yield from _answered(file.stem, question, answer)


def _without_codes(pod: str) -> str:
    text = re.sub(r"[A-Z]<<+ (.*?) >>+", r"\1", pod, flags=re.DOTALL)
    text = re.sub(r"X<[^<>]*>", "", text)
    for _ in range(3):  # They may stand in each other.
        text = re.sub(r"[A-Z]<([^<>|]*)(?:\|[^<>]*)?>", r"\1", text)
    return text.strip()


def _html(file: Path) -> Iterator[Answered]:
    """Read a chapter in HTML whose headings ask."""
    parts = re.split(r"<h[2-4][^>]*>(.*?)</h[2-4]>", file.read_text("utf-8"), flags=re.DOTALL)
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        title = re.sub(r'<a class="headerlink".*?</a>', "", heading, flags=re.DOTALL)
        question = re.sub(r"^[\d.\s]+", "", re.sub(r"\s+", " ", _plain(title)).strip())
        if question.endswith("?"):
            yield from _answered(file.stem, question, _plain(body))


def _plain(markup: str) -> str:
    text = re.sub(r"<(?:p|pre|li|dt|dd|div)\b", r"\n\n\g<0>", markup)
    text = html.unescape(re.sub(r"<[^>]*>", "", text))
    return "\n\n".join(part.strip() for part in _BLANK.split(text) if part.strip())


def _asciidoc(file: Path) -> Iterator[Answered]:
    """Read git's FAQ."""
    found = re.finditer(
        r"^\[\[[^\]]*\]\]\n(.+?)::\n(.*?)(?=^\[\[|^\w[^\n]*\n-{3,}|\Z)",
        file.read_text("utf-8"), re.DOTALL | re.MULTILINE,
    )  # fmt: skip
    for match in found:
        yield from _answered(file.stem, " ".join(match[1].split()), match[2].strip("+ \n\t"))


def _answered(chapter: str, question: str, answer: str) -> Iterator[Answered]:
    if len(answer) >= _SHORTEST:
        yield Answered(chapter, question, answer[:_MOST])


_Reader = Callable[[Path], Iterator[Answered]]
_MANUALS: Mapping[str, tuple[str, _Reader]] = {
    "debian": ("usr/share/doc/debian/FAQ/*.en.html", _html),
    "git": ("usr/share/doc/git/html/gitfaq.txt", _asciidoc),
    "perl": ("usr/share/perl/5.*.*/pod/perlfaq[1-9].pod", _pod),
    "python": ("usr/share/doc/python3.*/html/faq/*.html", _html),
}
"""Where the manuals lie, and what reads them."""


if __name__ == "__main__":
    sys.exit(main())
