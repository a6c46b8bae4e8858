"""Grouping templates that differ only in a word or two, as Drain groups log lines (He et al. 2017),
but with the same result whatever the order in which the errors came."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations

WILDCARD = "<*>"
MIN_VARIANTS = 3
"""Different words at one place before it counts as varying: two may be two different errors."""
MAX_VARYING = 2
MAX_GROUPED = 2_000
"""Templates of one tool that are compared with each other."""
_MAX_TOKENS_FOR_PAIRS = 24


def group(templates: Mapping[str, int]) -> tuple[dict[str, str], bool]:
    """Return the group of each template of one tool, and whether all were compared.

    Args:
        templates: templates and how often each occurred.

    A group keeps the words that its members share, `<*>` stands where they differ, in at most
    `MAX_VARYING` places. Where there are more than `MAX_GROUPED` templates, only the most frequent
    ones are compared.
    """
    by_frequency = sorted(templates, key=lambda text: (-templates[text], text))
    kept = by_frequency[:MAX_GROUPED]
    found = {template: template for template in templates}
    by_length: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    for template in kept:
        tokens = tuple(template.split(" "))
        by_length[len(tokens)].append(tokens)
    for length, lines in by_length.items():
        left = lines
        for varying in range(1, MAX_VARYING + 1):
            if length < varying + 2 or (varying > 1 and length > _MAX_TOKENS_FOR_PAIRS):
                break
            merged = _merge(left, varying)
            for tokens, joint in merged.items():
                found[" ".join(tokens)] = " ".join(joint)
            left = [tokens for tokens in left if tokens not in merged]
    return found, len(kept) == len(by_frequency)


def _merge(
    lines: Iterable[tuple[str, ...]], varying: int
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the group of each line that is alike but for `varying` places with enough others."""
    alike: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for tokens in lines:
        places = [i for i, token in enumerate(tokens) if _may_vary(token)]
        for chosen in combinations(places, varying):
            # Enough must be left to say what happened.
            if _literal_count(tokens) - varying < max(2, len(tokens) // 2 - 1):
                continue
            alike[tuple(WILDCARD if i in chosen else t for i, t in enumerate(tokens))].append(
                tokens
            )
    groups: dict[tuple[str, ...], tuple[str, ...]] = {}
    for joint, members in sorted(alike.items(), key=lambda item: (-len(item[1]), item[0])):
        free = [tokens for tokens in members if tokens not in groups]
        varied = all(
            len({tokens[i] for tokens in free}) >= MIN_VARIANTS
            for i, token in enumerate(joint)
            if token == WILDCARD
        )
        if varied:
            groups.update(dict.fromkeys(free, joint))
    return groups


def _may_vary(token: str) -> bool:
    """Tell whether a token may be a value: placeholders stand for one already, and digits that
    masking kept name the kind of failure."""
    return not token.startswith("<") and not any(letter.isdigit() for letter in token)


def _literal_count(tokens: tuple[str, ...]) -> int:
    return sum(not token.startswith("<") for token in tokens)
