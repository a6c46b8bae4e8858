from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.reflect.template_groups import WILDCARD, group, merge_alike


def groups_of(*templates: str) -> dict[str, str]:
    return group(dict.fromkeys(templates, 1))[0]


def test_templates_that_differ_in_one_word_are_one_group_from_three_words_on() -> None:
    three = [f"user {name} was not found" for name in ("anna", "bob", "carla")]
    assert set(groups_of(*three).values()) == {"user <*> was not found"}
    assert groups_of(*three[:2]) == {template: template for template in three[:2]}


def test_templates_that_differ_in_two_words_are_one_group() -> None:
    pairs = (("anna", "door"), ("bob", "gate"), ("carla", "lock"))
    found = groups_of(*(f"user {name} may not open the {what}" for name, what in pairs))
    assert set(found.values()) == {"user <*> may not open the <*>"}


def test_templates_that_differ_in_three_words_stay_apart() -> None:
    triples = (("anna", "open", "door"), ("bob", "close", "gate"), ("carla", "paint", "lock"))
    found = groups_of(*(f"user {a} may not {b} the big {c}" for a, b, c in triples))
    assert all(template == joint for template, joint in found.items())


def test_numbers_that_masking_kept_are_never_joined() -> None:
    found = groups_of(*(f"the server answered HTTP {code}" for code in (404, 500, 503, 502)))
    assert len(set(found.values())) == 4


def test_short_messages_stay_as_they_are() -> None:
    found = groups_of("read failed", "write failed", "open failed")
    assert len(set(found.values())) == 3


@given(st.permutations([f"no {word} in the {place} today" for word in "abcd" for place in "xyz"]))
def test_the_order_of_the_errors_does_not_matter(templates: list[str]) -> None:
    assert group(dict.fromkeys(templates, 1)) == group(dict.fromkeys(sorted(templates), 1))


def test_too_many_templates_are_told() -> None:
    found, complete = group({f"{i} x y z w": 1 for i in range(2_001)})
    assert not complete
    assert len(found) == 2_001


LINES = st.lists(
    st.tuples(*(st.sampled_from(("read", "write", "it", "now", "<num>", "v2")) for _ in range(5))),
    unique=True,
    max_size=40,
)


@given(LINES, st.sampled_from((1, 2)))
def test_groups_are_those_that_comparing_every_two_lines_finds(
    lines: list[tuple[str, ...]], varying: int
) -> None:
    found = merge_alike(lines, varying)
    for tokens, joint in found.items():
        places = [place for place, token in enumerate(joint) if token == WILDCARD]
        assert len(places) == varying
        assert all(joint[i] == tokens[i] for i in range(5) if i not in places)
        assert not any(tokens[i].startswith("<") or tokens[i] == "v2" for i in places)
    for joint in set(found.values()):
        members = [tokens for tokens in lines if found.get(tokens) == joint]
        for place in (i for i, token in enumerate(joint) if token == WILDCARD):
            assert len({tokens[place] for tokens in members}) >= 3
    # And no group that could still be made was missed.
    left = [tokens for tokens in lines if tokens not in found]
    for chosen in combinations(range(5), varying):
        for tokens in left:
            alike = [
                other
                for other in left
                if all(other[i] == tokens[i] for i in range(5) if i not in chosen)
                and all(other[i].isalpha() for i in chosen)
                and sum(not token.startswith("<") for token in other) - varying >= 2
            ]
            assert any(len({other[i] for other in alike}) < 3 for i in chosen)
