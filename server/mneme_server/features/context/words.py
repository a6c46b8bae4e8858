"""Words of a text that say what it is about, and sentences of a message that say anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from mneme_server.common.texts import composed
from mneme_server.engine.index.words.languages import (
    ENGLISH,
    HAN_STOPS,
    KANA_STOPS,
    QUESTION_MARKS,
    STOPS,
    UNSPACED,
    in_pairs,
    language_of,
    pairs_of,
)

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

_HAN_STOPS = frozenset(HAN_STOPS)
_TOKENS = re.compile(
    r"(?<!#)#{2,}[ \t]*[A-Z][A-Z_ -]{1,30}#{2,}"
    r"|<\|[^|<>\s]{1,40}\|>"
    r"|\[/?(?:INST|DONE|STOP|END|EOS|EOF)\]"
    r"|</?s>"
    r"|^[ \t]*(?:TERMINATE|STOP|DONE|EXIT|END|EOF)[.!]?[ \t]*$",
    re.MULTILINE,
)
_SENTENCE_END = re.compile(
    # Blanks are read from their first on: from each of many they would be read to their end.
    r"(?<=[.!?…])\s+|(?<=[。！？])(?![。！？」』”’）])|(?<!\s)[^\S\n]*\n\s*"
)
_NEEDLESS_SPACE = re.compile(r"(?<=[。！？]) ")
_SPOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LABEL = re.compile(r"[ \t]*[^\W\d_][\w.'-]{0,20}(?: [\w.'-]{1,20}){0,2}:[ \t]+")
_SECTION = re.compile(r"\n[^\S\n]*(?:#{1,6} |[-*+•] |\d{1,2}[.)] )")
_ANNOUNCED = re.compile(r"(?<=[.!?…]) [^.!?…]{1,200}:$")
_LONG = 300
"""Characters from which an answer is told by its first paragraphs."""
_GREETING = re.compile(
    r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|day))"
    r"(?: (?:there|all|everyone|again|team))?\s*[,!.:–-]\s*",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:feel free|let me know|(?:do not|don['’]t) hesitate|anything else"
    r"|(?:any|further|more|other) (?:questions|assistance|help|concerns)"
    r"|have an? (?:great|nice|good|wonderful|lovely|safe|pleasant)|safe travels|take care|good ?bye"
    r"|how (?:can|may) i (?:help|assist))\b",
    re.IGNORECASE,
)
_SAID_ANYWHERE = """
a about absolutely ahead all alright also am an and any anything apologies apologize apologise
appreciate appreciated are as concern concerns frustration frustrating inconvenience
assist assistance assisted assisting at awesome be been bye can certainly cheers confirm confirmed
continue correct could course day definitely do does done else exactly excellent fantastic fine for
from further glad go good goodbye got great happy have having hear hello help helped helpful helping
hey hi hold how i i'd i'll i'm i've if in indeed is issue it it's just know let like look looking
lot lovely may me moment more much my need needed nice no nope not now of off offer ok okay on one
out patience perfect please pleased pleasure proceed ready really right see so some something sorry
sounds still sure thank thanks that that's the then there these they this to too understand
understood us very want was we welcome well what when will wish with wonderful would yeah yep yes
you you'd you're your
"""
_COURTESY = frozenset(_SAID_ANYWHERE.split())
_CONFIRMATIONS = """
absolutely alright certainly correct definitely exactly fine good great nice no nope ok okay perfect
right sounds sure thank thanks understood wonderful yeah yep yes
"""
_OPENERS = frozenset(_CONFIRMATIONS.split())
_CONFIRMING = 2
"""What opens with a yes or a thank you tells nothing with so few words of its own."""


_MCP = re.compile(r"mcp__.+?__(?=\w)")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LOOKS = frozenset(
    (
        "browse", "calculate", "check", "compare", "count", "describe", "estimate", "fetch", "find",
        "get", "glob", "grep", "inspect", "list", "load", "look", "lookup", "ls", "open", "preview",
        "query", "read", "retrieve", "search", "select", "show", "status", "think", "track",
        "validate", "verify", "view",
    )
)  # fmt: skip
"""Verbs of tools that look, and change nothing."""
_ENUMERATED = re.compile(r"\s*(?:[-*+•]|\(?\d{1,2}[.):])\s*")
_PLANS = re.compile(
    r"(?:(?:ok|okay|great|perfect|alright|sure|now|next|first|then|so|finally|and)[,:!]?\s+)*"
    r"(?:"
    r"(?:i|we)(?:['’]ll| will| shall| need to| have to| should| must| can now| plan to| intend to"
    r"|['’](?:m|re) (?:going|about) to| (?:am|are) (?:going|about) to|['’]d like to)\b"
    r"|let me\b|let['’]s\b|time to\b|going to\b|about to\b"
    r"|(?:i|we) (?:now )?have (?:all|everything|enough|what)\b"
    r"|(?:here['’]?s|here is|this is) (?:the|my|our) plan\b|(?:the|my|our) plan\b|next steps?\b"
    r"|to ?do\b|remaining\b|still to\b"
    r")",
    re.IGNORECASE,
)
_UNDERWAY = re.compile(
    r"(?!(?:no|every|any|some)thing\b|during\b|according\b)[a-z]{2,}ing\b", re.IGNORECASE
)
_MOST_UNDERWAY = 16
"""Words up to which a sentence that begins with "Cancelling" says no more than that."""


def own_name(tool: str) -> str:
    """Return a tool's own name, without that of the MCP server that a host puts before it:
    "mcp__shop__cancel_order" is "cancel_order"."""
    return _MCP.sub("", tool, count=1) if tool.startswith("mcp__") else tool


def verbs_of(tool: str) -> set[str]:
    """Return the words that a tool's own name begins with, two at most, in lower case."""
    return {part.lower() for part in _PART.findall(own_name(tool))[:2]}


def looks(tool: str) -> bool:
    """Tell whether a tool only looks, by its name: "get_order" orders nothing."""
    return bool(verbs_of(tool) & _LOOKS)


def without_plans(text: str) -> str:
    """Return a message without the sentences that only say what will be done: a plan is no
    progress."""
    kept: list[str] = []
    number = ""
    for sentence in sentences_of(text):
        numbered = _ENUMERATED.match(sentence)
        said = sentence[numbered.end() if numbered else 0 :].strip()
        if not said:  # "1." alone: what it numbers comes next.
            number = sentence.strip()
            continue
        if not _is_plan(said):
            kept.append(f"{number} {sentence.strip()}".strip())
        number = ""
    return " ".join(kept)


def _is_plan(said: str) -> bool:
    if _PLANS.match(said):
        return True
    underway = _UNDERWAY.match(said)
    return underway is not None and len(said.split()) <= _MOST_UNDERWAY and not _DONE.search(said)


_DONE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|did|does|works?|fixe[sd]|solve[sd]|help(?:s|ed)|made)\b",
    re.IGNORECASE,
)


def words_of(text: str, language: str | None = None) -> list[str]:
    """Return the words of a text that say something, in lower case, in their order.

    `language` is that of its function words, by default what can be told of it: "die" says
    something in English.
    """
    function_words = STOPS.get(language_of(text) if language is None else language, ())
    return [
        word
        for word in map(_plain, _WORD.findall(composed(text)))
        if len(word) >= _SHORTEST and word not in _STOP and word not in function_words
    ]


def language_in(texts: Iterable[str]) -> str:
    """Return the language of texts that belong together, by the first whose own can be told; ""
    when that of none can."""
    return next(filter(None, map(language_of, texts)), "")


def _plain(word: str) -> str:
    """Return a word in lower case, of a contraction its longer part: "i'm" is no subject, "the
    flight's" is the flight, "l'erreur" the error."""
    return max(_APOSTROPHE.split(word.lower()), key=len)


def compared_words(text: str) -> frozenset[str]:
    """Return by which words a short text is told from others of its kind: its verb, numbers and
    abbreviations, too, which say nothing of what a whole session is about."""
    function_words = STOPS.get(language_of(text), STOPS[ENGLISH])
    words = (word.replace("’", "'").lower() for word in _SPOKEN.findall(composed(text)))
    return frozenset(folded(word) for word in words if word not in function_words)


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
    """Return the share of the topic's telling words that occur in a text, 0 to 1.

    Of a topic whose language cannot be told, the text's tells which of its words say something.
    """
    topic, text = composed(topic), composed(text)
    language = language_in([topic, text])
    wanted = _terms(topic, language)
    if not wanted:
        return 0.0
    return len(wanted & _terms(text, language)) / len(wanted)


def _terms(text: str, language: str) -> set[str]:
    """Return what texts are compared by: words, and of what is written in one run all pairs."""
    words = {folded(word) for word in words_of(UNSPACED.sub(" ", text), language)}
    pairs = {pair for run in UNSPACED.findall(text) for pair in pairs_of(run) if len(pair) > 1}
    telling = {pair for pair in pairs - KANA_STOPS if _HAN_STOPS.isdisjoint(pair)}
    return words | telling


def cut(text: str, limit: int) -> str:
    """Return a text on one line, of at most `limit` characters; "…" ends one that was longer."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def without_tokens(text: str) -> str:
    """Return a text without the tokens by which programs steer a conversation."""
    return _TOKENS.sub(" ", text).strip()


def telling(text: str, *, answers_only: bool = False) -> str:
    """Return the sentences of a message that tell something, on one line; empty when none does.

    With `answers_only` questions are left out, too, and of a long message what comes after its
    first paragraphs: lists and sections. A leading name ("Ann: ...") stays.
    """
    text = _CODE.sub(" ", without_tokens(text))
    label = _LABEL.match(text)
    name, said = (label[0], text[label.end() :]) if label else ("", text)
    kept = _kept(said, answers_only=answers_only)
    if answers_only and len(kept) > _LONG:
        lead = _kept(_SECTION.split(said, maxsplit=1)[0], answers_only=True)
        kept = _ANNOUNCED.sub("", lead) or kept
    return name + kept if kept else ""


def _kept(text: str, *, answers_only: bool) -> str:
    kept = []
    for sentence in sentences_of(text):
        said = _GREETING.sub("", sentence.strip(), count=1) if sentence else ""
        if said and tells(said) and not (answers_only and said.endswith(QUESTION_MARKS)):
            kept.append(said if said == sentence.strip() else said[0].upper() + said[1:])
    return _NEEDLESS_SPACE.sub("", " ".join(kept))


def sentences_of(text: str) -> list[str]:
    """Return a text's sentences; a line's end ends one, too."""
    return _SENTENCE_END.split(text)


def tells(sentence: str) -> bool:
    """Tell whether a sentence is more than a courtesy."""
    if _OFFER.search(sentence):
        return False
    words = [word.replace("’", "'").lower() for word in _SPOKEN.findall(sentence)]
    own = sum(word not in _COURTESY for word in words)
    return own > (_CONFIRMING if words and words[0] in _OPENERS else 0)


def own_words(text: str) -> int:
    """Return how many words of a text are none of courtesy."""
    return sum(word.lower() not in _COURTESY for word in _SPOKEN.findall(in_pairs(text)))


def ended(text: str) -> str:
    """Return a text that ends as a sentence does."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "…", "。", "！", *QUESTION_MARKS)) else f"{text}."
