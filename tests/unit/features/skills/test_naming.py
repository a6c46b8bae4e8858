"""What skills are called: what is done, and not whose task it was."""

from __future__ import annotations

from collections import Counter

import pytest
from mneme_server.features.skills.consolidation import name_of, proper_names, word_sets


def named(*tasks: str, others: tuple[str, ...] = ()) -> str:
    every = [*tasks, *others]
    proper = proper_names(every)
    everywhere = Counter(word for words in word_sets(every, proper) for word in words)
    example = " ".join(word for word in tasks[0].split() if word.strip(".,").lower() not in proper)
    return name_of(example, word_sets(tasks, proper), everywhere, len(every))


def test_a_customers_name_is_no_part_of_a_skills() -> None:
    tasks = [
        "You are Yusuf Rossi and want to exchange a delivered keyboard.",
        "Your name is Yusuf Rossi, you exchange the delivered keyboard and a thermostat.",
    ]
    name = named(*tasks, others=("You are Mei Kovacs, cancel the pending order.",))
    assert {"exchange", "delivered", "keyboard"} <= set(name.split("_"))
    assert not {"yusuf", "rossi", "mei"} & set(name.split("_"))


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        (["Ask Ann about it. Ann knows."], {"ann"}),
        (["Rotate the keys of JWT and OAuth."], set()),
        (["Fix it in Rust.", "Rewrite the rust parser."], set()),
        (["Rename the file. Then tell Bob"], {"bob"}),
        (["Deploy\nDeploy"], set()),
    ],
)
def test_a_name_has_a_capital_within_a_sentence_and_is_nowhere_small(
    tasks: list[str], names: set[str]
) -> None:
    assert proper_names(tasks) == names
