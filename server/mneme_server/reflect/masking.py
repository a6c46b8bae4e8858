"""From an error's message to its template: what varies from one occurrence to the next is replaced.

Own rules rather than a log parser: drain3, the usual choice, has had no release since 2022, keeps
its state in one growing tree whose templates depend on the order of arrival, and masks with rules
that one has to write anyway. These rules always give the same template for the same message.
"""

from __future__ import annotations

import re

MAX_TEMPLATE = 300
NO_MESSAGE = "(no message)"

# A number that names the kind of failure is kept: "HTTP 404" and "HTTP 500" are two errors.
_KEPT = (
    r"(?P<kept>\b(?:status(?:[ _]code)?|http(?:/\d(?:\.\d)?)?|errno|winerror"
    r"|exit[ _](?:code|status)|error[ _]code|code)[ :=]{1,3}\d{1,5}\b)"
)
_RULES = (
    _KEPT,
    r"(?P<url>\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>)\]]+)",
    r"(?P<email>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)",
    r"(?P<uuid>\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b)",
    r"(?P<date>\b\d{4}-\d{2}-\d{2}"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\b\d{1,2}[/.]\d{1,2}[/.]\d{4}\b|\b\d{2}:\d{2}:\d{2}(?:[.,]\d+)?\b)",
    # An apostrophe inside a word ("can't") opens no quotation.
    r"(?P<str>(?<!\w)\"[^\"\n]{0,500}\"(?!\w)|(?<!\w)'[^'\n]{0,500}'(?!\w)|`[^`\n]{1,500}`)",
    r"(?P<path>(?<![\w/])(?:[a-z]:[\\/]|~/|\.{1,2}/|/)(?:[\w.@+~-]+[\\/])*[\w.@+~-]*[\w~-]"
    r"(?::\d+)*|\b(?:[\w.-]+/)+[\w-]+\.\w{1,8}\b(?::\d+)*)",
    r"(?P<hex>\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b)",
    r"(?P<ip>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)",
    r"(?P<num>(?<!\w)[-+]?[$€£]?\d+(?:[.,_:]\d+)*(?P<unit>ns|us|ms|s|secs?|m|mins?|h|hours?|d|days?"
    r"|b|[kmgt]i?b|k|px|x|st|nd|rd|th)?(?!\w))",
    r"(?P<word>\b[^\W\d]\w*(?:-\w+)*\b|\b\d+[^\W\d_][\w-]*\b)",
)
_PATTERN = re.compile("|".join(_RULES), re.IGNORECASE)
_PLACEHOLDER = {
    "url": "<url>", "email": "<email>", "uuid": "<id>", "date": "<date>", "str": "<str>",
    "path": "<path>", "hex": "<id>", "ip": "<id>", "num": "<num>",
}  # fmt: skip
_DIGITS_APART = re.compile(r"[_-]\d{2,}|\d[_-]|\d[a-z]+\d", re.IGNORECASE)
_CAPITAL_CODE = re.compile(r"(?=.*[A-Z])(?=(?:.*\d){2})[A-Z0-9]+")


def template_of(message: str) -> str:
    """Return the template of an error's message.

    Placeholders: `<num>`, `<id>` (UUIDs, hexadecimal numbers, addresses, words with digits such as
    HAT045 or gift_card_8190333), `<str>` (quoted), `<path>`, `<date>` (times too), `<email>`,
    `<url>`. Of a traceback the last line counts. White space is folded, and a template has at most
    `MAX_TEMPLATE` characters.
    """
    masked = _PATTERN.sub(_replacement, " ".join(_telling_part(message).split()))
    return masked[:MAX_TEMPLATE].rstrip() or NO_MESSAGE


def _telling_part(message: str) -> str:
    """Return the line of a traceback that says what happened; else the message, cut."""
    text = message.strip()
    if text.startswith("Traceback (most recent call last)"):
        return text.rsplit("\n", 1)[-1][: 4 * MAX_TEMPLATE]
    return text[: 4 * MAX_TEMPLATE]


def _replacement(match: re.Match[str]) -> str:
    kind, text = str(match.lastgroup), match.group()
    if kind == "kept":
        return text
    if kind == "word":
        return _word(text)
    return _PLACEHOLDER[kind] + (match["unit"] or "")


def _word(text: str) -> str:
    """Return a word as it is, or its placeholder when its digits make it an identifier.

    Names of things such as sha256, utf-8 or int32 stay.
    """
    if text.isalpha() or not any(letter.isdigit() for letter in text):
        return text
    digits = sum(letter.isdigit() for letter in text)
    if digits >= 4 or _CAPITAL_CODE.fullmatch(text) or _DIGITS_APART.search(text):
        return "<id>"
    return text
