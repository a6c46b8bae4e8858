"""Groups of templates that differ only in a word or two, as Drain groups log lines (He et al.
2017), but with the same result whatever the order in which the errors came."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations

WILDCARD = "<*>"
MIN_VARIANTS = 3
"""Different words at one place before it counts as varying: two may be two different errors."""
MAX_VARYING = 2
MAX_GROUPED = 2_000
"""Templates of one tool that are compared with each other."""
_MAX_TOKENS_FOR_PAIRS = 24
_PLACEHOLDER = re.compile(r"\W*<\*?\w*>\W*")


def group(templates: Mapping[str, int]) -> tuple[dict[str, str], bool]:
    """Return the group of each template of one tool, and whether all were compared.

    A group keeps the words that its members share, `<*>` stands where they differ, in at most
    `MAX_VARYING` places. Where there are more than `MAX_GROUPED` templates, only the most frequent
    ones are compared.

    Args:
        templates: templates and how often each occurred.
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
            merged = merge_alike(left, varying)
            for tokens, joint in merged.items():
                found[" ".join(tokens)] = " ".join(joint)
            left = [tokens for tokens in left if tokens not in merged]
    return found, len(kept) == len(by_frequency)


def merge_alike(
    lines: Sequence[tuple[str, ...]], varying: int
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the group of each line that is alike but for `varying` places with enough others."""
    alike = _alike(lines, varying)
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


def _alike(
    lines: Sequence[tuple[str, ...]], varying: int
) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the lines that are alike but for `varying` places, by what they share: those of which
    there may be enough for a group.

    Two thousand lines have hundreds of thousands of such places, and hardly any two share one: they
    are counted by hashes, and spelt out only where the hashes meet.
    """
    places = {tokens: _places(tokens, varying) for tokens in lines}
    seen = Counter(chain.from_iterable(_keys(t, of, varying) for t, of in places.items()))
    alike: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for tokens, of in places.items():
        keys = _keys(tokens, of, varying)
        for chosen, key in zip(combinations(of, varying), keys, strict=True):
            if seen[key] >= MIN_VARIANTS:
                joint = list(tokens)
                for place in chosen:
                    joint[place] = WILDCARD
                alike[tuple(joint)].append(tokens)
    return alike


def _places(tokens: tuple[str, ...], varying: int) -> Sequence[int]:
    """Return the places that may vary; none where too little would be left to say what happened."""
    literal = sum(not _PLACEHOLDER.fullmatch(token) for token in tokens)
    if literal - varying < max(2, len(tokens) // 2 - 1):
        return ()
    return [place for place, token in enumerate(tokens) if _may_vary(token)]


def _keys(tokens: tuple[str, ...], places: Sequence[int], varying: int) -> Iterator[int]:
    """Yield a hash of the line for each choice of places, with wildcards there: the same for lines
    that are alike, as good as never for others."""
    whole = sum(map(hash, enumerate(tokens)))
    moved = [hash((place, WILDCARD)) - hash((place, tokens[place])) for place in places]
    return (whole + sum(chosen) for chosen in combinations(moved, varying))


def _may_vary(token: str) -> bool:
    """Tell whether a token may be a value: placeholders stand for one already, and digits that
    masking kept name the kind of failure."""
    if _PLACEHOLDER.fullmatch(token):
        return False
    return "<" in token or not any(letter.isdigit() for letter in token)
