"""What a message says, without what is said in every conversation: control tokens, greetings,
confirmations, courtesies, offers of help."""

from __future__ import annotations

import re

_TOKENS = re.compile(
    r"#{2,}[ \t]*[A-Z][A-Z_ -]{1,30}#{2,}"
    r"|<\|[^|<>\s]{1,40}\|>"
    r"|\[/?(?:INST|DONE|STOP|END|EOS|EOF)\]"
    r"|</?s>"
    r"|^[ \t]*(?:TERMINATE|STOP|DONE|EXIT|END|EOF)[.!]?[ \t]*$",
    re.MULTILINE,
)
_BREAK = re.compile(r"(?<=[.!?…])\s+|\s*\n\s*")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LABEL = re.compile(r"[ \t]*[^\W\d_][\w.'-]{0,20}(?: [\w.'-]{1,20}){0,2}:[ \t]+")
_SECTION = re.compile(r"\n\s*(?:#{1,6} |[-*+•] |\d{1,2}[.)] )")
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
    for sentence in _BREAK.split(text):
        said = _GREETING.sub("", sentence.strip(), count=1) if sentence else ""
        if said and tells(said) and not (answers_only and said.endswith("?")):
            kept.append(said if said == sentence.strip() else said[0].upper() + said[1:])
    return " ".join(kept)


def tells(sentence: str) -> bool:
    """Tell whether a sentence is more than a courtesy."""
    if _OFFER.search(sentence):
        return False
    words = [word.replace("’", "'").lower() for word in _WORD.findall(sentence)]
    own = sum(word not in _COURTESY for word in words)
    return own > (_CONFIRMING if words and words[0] in _OPENERS else 0)


def own_words(text: str) -> int:
    """Return how many words of a text are none of courtesy."""
    return sum(word.lower() not in _COURTESY for word in _WORD.findall(text))


def ended(text: str) -> str:
    """Return a text that ends as a sentence does."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
