"""Words: which of them tell what a text is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_WORD = re.compile(r"(?<!\w)[^\W\d_][\w'’-]{2,40}")
_APOSTROPHE = re.compile(r"['’]")
_SHORTEST = 3
_COMMON = """
about above across actually added adding after again against agent all already also although
always am and another any anything are around ask asked because been before being below between both
but call called can cannot change changed changes check checked completed could create created
current decided decision did does doing done down each either else end ended error even every
everything failed false file files find first fix fixed following for found from further get gets
getting give given goes going good got great had has have having help her here hers him his how
however implement implemented into its itself just keep know last later least less let like list
little look made make making many may maybe message might more most much must need needed needs
never new next none not nothing now null off okay once one only open other our out over own per
perhaps place please progress put quite rather really right said same say see seems session
sessions set several shall she should show since some something soon still such sure take task
tell text than thank thanks that the their them then there these they thing things this those
three through todo tool tools too true try two under unless until update updated use used user
using very via want wanted wants was way well went were what when where whether which while who
whole whom whose why will with within without work worked working works would write wrote yes yet
you your yours assist assistance assisting certainly confirm confirmed dear detail details feel glad
happy hello hey information moment perfect proceed provide provided question questions regards
request sorry unfortunately welcome won don doesn didn isn aren wasn couldn wouldn shouldn hasn
haven wow yeah hmm awesome amazing
"""
_STOP = frozenset(_COMMON.split())
_AREA = re.compile(r"[a-z][a-z_-]{2,30}")
_GENERIC = frozenset(
    ("src", "lib", "libs", "app", "apps", "test", "tests", "spec", "specs", "main", "java", "home",
     "pkg", "packages", "internal", "cmd", "usr", "var", "tmp", "opt", "root", "users", "workspace",
     "repo", "include", "server", "client", "docs", "scripts", "node_modules")
)  # fmt: skip
_NAMED_ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Timeout|Warning|Failure)\b")


def words_of(text: str) -> list[str]:
    """Return the words of a text that say something, in lower case, in their order."""
    return [
        word
        for word in map(_plain, _WORD.findall(text))
        if len(word) >= _SHORTEST and word not in _STOP
    ]


def _plain(word: str) -> str:
    """Return a word in lower case, of a contraction what is before the apostrophe: "i'm" is no
    subject, "the flight's" is the flight."""
    return _APOSTROPHE.split(word.lower(), maxsplit=1)[0]


def folded(word: str) -> str:
    """Return a word without its plural's s, to compare it."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def area_words(path: str) -> list[str]:
    """Return what the folders of a path say about where it belongs: "auth" of src/auth/jwt.py."""
    parts = path.lower().replace("\\", "/").split("/")[:-1]
    return [part for part in parts if _AREA.fullmatch(part) and part not in _GENERIC]


def frequent_words(counts: Counter[str], limit: int) -> list[str]:
    """Return the most frequent words, each in its most frequent form; earlier ones first."""
    forms: dict[str, Counter[str]] = {}
    for word, count in counts.items():
        forms.setdefault(folded(word), Counter())[word] += count
    ranked = sorted(forms.values(), key=lambda form: -form.total())
    return [form.most_common(1)[0][0] for form in ranked[:limit]]


def error_topics(template: str) -> Iterable[str]:
    """Return what an error is about: its name if it has one, else its first telling words."""
    named = _NAMED_ERROR.findall(template)
    if named:
        return list(dict.fromkeys(named))[:2]
    plain = re.sub(r"<\w+>", " ", template)
    return list(dict.fromkeys(words_of(plain)))[:3]


def coverage(topic: str, text: str) -> float:
    """Return the share of the topic's telling words that occur in a text, 0 to 1."""
    wanted = {folded(word) for word in words_of(topic)}
    if not wanted:
        return 0.0
    return len(wanted & {folded(word) for word in words_of(text)}) / len(wanted)


def cut(text: str, limit: int) -> str:
    """Return a text on one line, of at most `limit` characters; "…" ends one that was longer."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
