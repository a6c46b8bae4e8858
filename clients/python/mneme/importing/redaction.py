"""Masks secrets in what is imported, before any of it leaves this process.

The patterns are those of well-known credentials, listed below. They find what looks like a secret,
not what is one: a password in a sentence stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

# Bounded, so that no text takes longer than in proportion to its length.
_NAME = r"[A-Za-z0-9_.-]{0,64}(?:api[_-]?key|secret|token|passw(?:or)?d|passphrase|private[_-]?key)"
_NAMED = re.compile(rf"(?i)^{_NAME}s?$|^(?:authorization|cookie|set-cookie)$")
# Counts and settings, such as max_tokens and input_tokens, are called tokens, too.
_HARMLESS = re.compile(r"(?i)tokens?$")

# What to mask, by kind. Where a pattern has a group `secret`, only that is masked.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private key",
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----(?:.(?!-----BEGIN))*?"
            r"-----END [A-Z ]*PRIVATE KEY( BLOCK)?-----",
            re.DOTALL,
        ),
    ),
    ("Anthropic key", re.compile(r"\bsk-ant-[A-Za-z0-9_-]{20,}")),
    ("OpenAI key", re.compile(r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}")),
    ("AWS key", re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b")),
    ("GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})")),
    ("GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}")),
    ("Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("Slack webhook", re.compile(r"https://hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,}")),
    ("Google key", re.compile(r"\bAIza[A-Za-z0-9_-]{35}")),
    ("Stripe key", re.compile(r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ("npm token", re.compile(r"\bnpm_[A-Za-z0-9]{36}\b")),
    ("PyPI token", re.compile(r"\bpypi-[A-Za-z0-9_-]{50,}")),
    ("Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("Mneme key", re.compile(r"\bmn_[A-Za-z0-9_-]{20,}")),
    ("JWT", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    (
        "authorization header",
        re.compile(r"(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/-]{16,}=*)"),
    ),
    (
        "password in a URL",
        re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{0,256}:(?P<secret>[^\s/@]{1,256})@"),
    ),
    (
        "assignment",
        re.compile(
            rf"(?i)\b(?P<name>{_NAME})\b\\?[\"']?\s*(?:=|:)\s*"
            r"\\?[\"']?(?P<secret>(?![A-Za-z_][\w.]{0,200}[(\[])[^\s\"'\\,;&]{8,})"
        ),
    ),
)
# No pattern matches without one of these in the text; most texts are done after this.
_HINT = re.compile(
    r"(?i)PRIVATE KEY|sk-|A[KSBC]IA|ACCA|gh[pousr]_|github_pat|glpat-|xox|hooks\.slack|AIza|[rs]k_|"
    r"npm_|pypi-|hf_|mn_|eyJ|bearer|basic|://|key|secret|token|passw|passphrase"
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
            return masked if masked != value else self._mask("named value")
        return self(value)

    def _text(self, text: str) -> str:
        if not _HINT.search(text):
            return text
        for kind, pattern in _PATTERNS:
            text = pattern.sub(partial(self._found, kind), text)
        return text

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
