"""From an error's message to its template: what varies from one occurrence to the next is replaced.

Own rules rather than a log parser. drain3, the usual choice, was tried: it takes "HTTP 404" and
"HTTP 500", "cannot read" and "cannot write", "permission denied" and "permission granted" for one
pattern each; its templates depend on what came before; and its last release, of 2022, pins other
libraries to versions of 2021. These rules give the same template for the same message, always.
"""

from __future__ import annotations

import hashlib
import re

from mneme_server.common.texts import composed

MAX_TEMPLATE = 300
NO_MESSAGE = "(no message)"

# A number that names the kind of failure is kept: "HTTP 404" and "HTTP 500" are two errors.
_KEPT = (
    r"(?P<kept>\b(?:status(?:[ _]code)?|http(?:/\d(?:\.\d)?)?|errno|winerror"
    r"|exit[ _](?:code|status)|error[ _]code|code)[ :=]{1,3}\d{1,5}\b"
    r"|\b(?:error|warning|fatal)[ \[(]{1,2}(?-i:[A-Z]{1,10})-?\d{1,6}(?=[\]):])"
    r"|\bORA-\d{5}\b|\bSQLSTATE[ \[:=]{1,3}[0-9A-Z]{5}\b)"
)
# Of endings that names in code have as well, more than two parts are a host: api.example.io is
# one, socket.io may be a library.
_HOST = (
    r"(?P<host>(?<![\w.@/-])(?-i:(?:[a-z0-9-]++\.)+(?:com|org|edu|gov|internal|local|lan|corp|svc)"
    r"|(?:[a-z0-9-]++\.){2,}(?:io|net|dev|app|ai|cloud|de|uk|fr|eu|us|cn|jp))"
    r"(?![\w-]|\.\w)(?::\d+)?)"
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
    r"(?P<str>(?<!\w)\"[^\"\n]{0,500}\"(?!\w)|(?<!\w)'[^'\n]{0,500}'(?!\w)|`[^`\n]{1,500}`"
    r"|“[^”\n]{0,500}”)",
    r"(?P<path>(?<![\w/])(?:[a-z]:[\\/]|~/|\.{1,2}/|/)(?:[\w.@+~-]+[\\/])*[\w.@+~-]*[\w~-]"
    r"(?::\d+)*|\b(?:[\w.-]+/)+[\w-]+\.\w{1,8}\b(?::\d+)*)",
    r"(?P<hex>\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b)",
    r"(?P<ip>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)",
    _HOST,
    r"(?P<num>(?<!\w)[-+]?[$€£]?\d+(?:[.,_:]\d+)*(?P<unit>ns|us|ms|s|secs?|m|mins?|h|hours?|d|days?"
    r"|b|[kmgt]i?b|k|px|x|st|nd|rd|th)?(?!\w))",
    r"(?P<word>\b[^\W\d]\w*(?:-\w+)*\b|\b\d+_?[^\W\d_][\w-]*\b)",
)
_PATTERN = re.compile("|".join(_RULES), re.IGNORECASE)
_PLACEHOLDER = {
    "url": "<url>", "email": "<email>", "uuid": "<id>", "date": "<date>", "str": "<str>",
    "path": "<path>", "hex": "<id>", "ip": "<id>", "host": "<id>", "num": "<num>",
}  # fmt: skip
_NAMES = frozenset({"host", "ip", "word"})
# Words whose digits belong to what they name.
_TERM = re.compile(
    r"""
    (?:utf|ucs)[-_]?\d{1,2}(?:[-_]?(?:le|be|sig))? | utf8mb[34] | iso[-_]?\d{4,5}(?:[-_]\d{1,2})?
    | (?:cp|windows-)\d{3,4} | latin[-_]?1 | sha[-_]?\d{1,3} | md[245] | crc\d{1,2} | aes-?\d{3}
    | (?:ed|x)25519 | rsa-?\d{4} | base[-_]?(?:16|32|58|64|85)
    | u?int(?:8|16|32|64|128)(?:_t)? | [iuf](?:8|16|32|64|128) | b?float(?:8|16|32|64|128)
    | fp(?:8|16|32) | bf16 | complex(?:64|128)
    | ipv[46] | http[23] | oauth[12] | tls-?v?1(?:_[0-3])? | sslv[23] | x509 | pkcs-?\d{1,2}
    | s3 | ec2 | k8s | i18n | l10n | b2b | p2p | e2e | h26[45] | mp[34] | [1-5]xx | [23]d | v\d{1,2}
    | x86(?:_64)? | x64 | amd64 | arm64 | [i][36]86 | win(?:32|64) | python[23] | log4j2? | neo4j
    | sqlite3 | psycopg[23] | boto3 | urllib3 | jinja2 | html5 | css3 | es[56]
    """,
    re.IGNORECASE | re.VERBOSE,
)
_MOST_PASSES = 5

TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(re.escape(TRACEBACK) + r"\n(?:[ \t][^\n]*\n|\n)*(\S[^\n]*)")
"""Python's; its frames are indented, and the lines of the exception's message follow below."""
_FRAMES = re.compile(
    r"\n(?:[ \t]+at \S|[ \t]+from \S+:\d|goroutine \d+ \[|stack backtrace:|Stack trace:\n#0)"
)
"""Where the frames begin in those of JavaScript, Java, C#, Ruby, Go, Rust and PHP."""


def template_of(message: str, *, with_names: bool = False) -> str:
    """Return the template of an error's message; that of a template is itself.

    Placeholders: `<num>`, `<id>` (UUIDs, hexadecimal numbers, hosts and their addresses, words
    with digits such as HAT045, web12 or gift_card_8190333), `<str>` (quoted), `<path>`, `<date>`
    (times too), `<email>`, `<url>`. Of a stack trace counts what `telling_part` returns. White
    space is folded, and a template has at most `MAX_TEMPLATE` characters. `with_names` leaves
    hosts, their addresses, and words with digits.
    """
    replacement = _but_names if with_names else _replacement
    masked = " ".join(telling_part(message)[: 4 * MAX_TEMPLATE].split())
    # What a placeholder leaves beside it may be a value in its turn; rarely more than once.
    for _ in range(_MOST_PASSES):
        before, masked = masked, _PATTERN.sub(replacement, masked)[:MAX_TEMPLATE].rstrip()
        if masked == before:
            break
    return masked or NO_MESSAGE


def telling_part(message: str) -> str:
    """Return what says what happened: of a stack trace the line that names the exception, of
    another message all of it."""
    text = message.strip()
    if (begins := text.rfind(TRACEBACK)) >= 0:
        if raised := _RAISED.match(text, begins):
            return raised[1]
        return text.rsplit("\n", 1)[-1] if not begins else text
    frames = _FRAMES.search(text)
    return text[: frames.start()].rstrip() if frames else text


def _replacement(match: re.Match[str]) -> str:
    kind, text = str(match.lastgroup), match.group()
    if kind == "kept":
        return text
    if kind == "word":
        return _word(text)
    return _PLACEHOLDER[kind] + (match["unit"] or "")


def _but_names(match: re.Match[str]) -> str:
    return match.group() if match.lastgroup in _NAMES else _replacement(match)


def _word(text: str) -> str:
    """Return a word as it is, or `<id>` when it has digits: host-0, web12 and bob42 name one of
    many. Terms such as sha256, utf-8 or int32 stay."""
    if text.isalpha() or not any(letter.isdigit() for letter in text) or _TERM.fullmatch(text):
        return text
    return "<id>"


# A word with a digit, with what stands for a number beside it.
_VARIES = re.compile(_KEPT + r"|[$€£#]?[\w.,:/+-]*\d[\w.,:/%+-]*", re.IGNORECASE)


def shape_of(text: str) -> int:
    """Return a number of 64 bits that texts share which differ in words with digits only.

    For every text that is stored: a twentieth of the time that `template_of` takes, which masks
    what is quoted and named as well. A number that names the kind of failure is kept here, too.
    Never 0.
    """
    masked = _VARIES.sub(lambda found: found["kept"] or "0", text)
    said = " ".join(composed(masked).lower().split())
    digest = hashlib.blake2b(said.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1
