"""Masks secrets in what is imported, before any of it leaves this process.

The patterns are those of well-known credentials, listed below. They find what looks like a secret,
not what is one: a password in a sentence stays.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

# Bounded, so that no text takes longer than in proportion to its length.
_NAME = (
    r"[A-Za-z0-9_.-]{0,64}"
    r"(?:(?:api|private|secret|access)[_-]?key|secret|token|passw(?:or)?d|passphrase"
    r"|(?<=[_-])(?:pass|pwd))"
)
_NAMED = re.compile(rf"(?i)^{_NAME}s?$|^(?:authorization|cookie|set-cookie)$")
# Nothing but what was masked, behind the scheme of an authorization.
_WHOLE = re.compile(r"(?:\w+ )?\[masked: [^\]]+\]")
# Counts and settings, such as max_tokens and input_tokens, are called tokens, too.
_HARMLESS = re.compile(r"(?i)tokens?$")

# Also behind a line break that stands as two characters, as JSON has it.
_BEGINNING = r"(?:\b|(?<=\\[nrt]))"
# Around names and values in JSON, which may stand in a text of JSON, and that in another one.
_QUOTE = r"\\{0,7}[\"']?"
# A cookie as headers have it; prose about cookies has none.
_COOKIE = rf"[\w.!#$%&*+^|~-]{{1,256}}={_QUOTE}[^\s;\"'\\]*"


def _word(pattern: str) -> re.Pattern[str]:
    """What begins a word."""
    return re.compile(_BEGINNING + pattern)


# What to mask, by kind. Where a pattern has a group `secret`, only that is masked.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    # Before the others: where one of them is masked inside a cookie, the rest reads as none.
    (
        "cookie",
        re.compile(
            rf"(?i){_BEGINNING}cookie{_QUOTE}[ \t]*[:=][ \t]*{_QUOTE}"
            rf"(?P<secret>{_COOKIE}(?:{_QUOTE};[ \t]*{_COOKIE})*)"
        ),
    ),
    (
        "private key",
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----(?:(?:.(?!-----BEGIN))*?"
            r"-----END [A-Z ]*PRIVATE KEY( BLOCK)?-----"
            r"|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+)",  # Cut off: as far as it goes.
            re.DOTALL,
        ),
    ),
    ("Anthropic key", _word(r"sk-ant-[A-Za-z0-9_-]{20,}")),
    ("OpenAI key", _word(r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}")),
    ("AWS key", _word(r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b")),
    ("GitHub token", _word(r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})")),
    ("GitLab token", _word(r"glpat-[A-Za-z0-9_-]{20,}")),
    ("Slack token", _word(r"xox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("Slack webhook", re.compile(r"https://hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,}")),
    ("Google key", _word(r"AIza[A-Za-z0-9_-]{35}")),
    ("Stripe key", _word(r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ("npm token", _word(r"npm_[A-Za-z0-9]{36}\b")),
    ("PyPI token", _word(r"pypi-[A-Za-z0-9_-]{50,}")),
    ("Hugging Face token", _word(r"hf_[A-Za-z0-9]{30,}")),
    ("Mneme key", _word(r"mn_[A-Za-z0-9_-]{20,}")),
    ("JWT", _word(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    (
        "authorization header",
        re.compile(
            rf"(?i)(?:{_BEGINNING}(?:bearer|basic)\s+(?=[A-Za-z0-9._~+/-]{{16}})"
            rf"|authorization{_QUOTE}\s*[:=]\s*{_QUOTE}(?:bearer|basic|token)\s+)"
            r"(?P<secret>[A-Za-z0-9._~+/-]{4,}=*)"
        ),
    ),
    (
        "password in a URL",
        re.compile(
            r"(?i)\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{0,256}:"
            r"(?P<secret>[^\s/@]{1,256}(?:@[^\s/@\"'\\,;]{1,256}){0,4})@"
        ),
    ),
    (
        "assignment",
        re.compile(
            rf"(?i)\b(?P<name>{_NAME})\b{_QUOTE}\s*(?:=|:)\s*{_QUOTE}"
            r"(?P<secret>(?![A-Za-z_][\w.]{0,200}[(\[])[^\s\"'\\,;&]{8,})"
        ),
    ),
)
# No pattern matches without one of these in the text; most texts are done after this.
_HINT = re.compile(
    r"(?i)PRIVATE KEY|sk-|A[KSBC]IA|ACCA|gh[pousr]_|github_pat|glpat-|xox|hooks\.slack|AIza|[rs]k_|"
    r"npm_|pypi-|hf_|mn_|eyJ|bearer|basic|cookie|://|key|secret|token|pass|pwd"
)


class Redactor:
    """Masks secrets, and counts them by kind.

    Args:
        masked: where to count.
    """

    def __init__(self, masked: Counter[str]) -> None:
        self.masked = masked

    def __call__(self, value: Any) -> Any:
        """A JSON value with every secret in its texts and keys replaced by `[masked: KIND]`."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self(item) for item in value]
        if isinstance(value, Mapping):
            return {self._text(str(key)): self._entry(key, item) for key, item in value.items()}
        return value

    def _entry(self, key: Any, value: Any) -> Any:
        if isinstance(value, str) and value and _NAMED.match(str(key)):
            masked = self._text(value)
            return masked if _WHOLE.fullmatch(masked) else self._mask("named value")
        return self(value)

    def _text(self, text: str) -> str:
        if not _HINT.search(text):
            return text
        text = self._json(text)
        for kind, pattern in _PATTERNS:
            text = pattern.sub(partial(self._found, kind), text)
        return text

    def _json(self, text: str) -> str:
        """A text of JSON masked as what it says: only there is a short secret told by its name."""
        if not text.lstrip().startswith(("{", "[")):
            return text
        try:
            value = json.loads(text)
            masked = self(value)
        except (ValueError, RecursionError):
            return text
        return text if masked == value else json.dumps(masked, ensure_ascii=False)

    def _found(self, kind: str, found: re.Match[str]) -> str:
        groups = found.groupdict()
        if "secret" not in groups:
            return self._mask(kind)
        secret = groups["secret"]
        harmless = _HARMLESS.search(groups.get("name") or "") and secret.isdigit()
        if harmless or secret.startswith("[masked"):
            return found.group()
        start, end = (position - found.start() for position in found.span("secret"))
        whole = found.group()
        return whole[:start] + self._mask(kind) + whole[end:]

    def _mask(self, kind: str) -> str:
        self.masked[kind] += 1
        return f"[masked: {kind}]"
