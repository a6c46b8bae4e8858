"""Names in code, paths and codes are found as they are written, and by the words in them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.index.words.analysis import WordField, Words, regrouped, with_names
from mneme_server.engine.index.words.lexical import LexicalIndex
from unit.engine.index.memory_source import event

TEXTS = [
    "generate_relationships() leaves out the parents",
    "We generate a report of all relationships, and relationships of relationships",
    "PaymentTimeout is raised when the bank does not answer",
    "see src/billing/tax.py, line 40",
    "version 1.23 broke it",
    "version 12.3 is fine",
    "Die Funktion berechneSteuer wurde von der Buchhaltung geprüft",
    "nothing of interest here",
    "支付服务抛出RefundRejected异常",
    "InvoiceMissing이 발생했습니다",
    "証明書の更新でCertificateExpiredが発生",
    "调用list_open_orders失败",
    "版本4.56崩溃了",
    "版本45.6没有问题",
]


@pytest.fixture(params=["waiting", "committed"])
def lexical(tmp_path: Path, request: pytest.FixtureRequest) -> LexicalIndex:
    index = LexicalIndex(tmp_path, IndexSettings())
    index.add([event(number, text) for number, text in enumerate(TEXTS, 1)])
    if request.param == "committed":
        index.commit()
    return index


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("generate_relationships", 1),
        ("what does generateRelationships do", 1),
        ("generate-relationships", 1),
        ("payment timeout", 3),
        ("PaymentTimeout", 3),
        ("payment_timeout", 3),
        ("src/billing/tax.py", 4),
        ("1.23", 5),
        ("12.3", 6),
        ("berechneSteuer", 7),
        ("berechne_steuer", 7),
        ("refund rejected", 9),
        ("为什么抛出RefundRejected异常", 9),
        ("invoice missing", 10),
        ("InvoiceMissing은 무엇입니까", 10),
        ("certificate expired", 11),
        ("listOpenOrders", 12),
        ("什么是list_open_orders", 12),
        ("4.56", 13),
        ("45.6", 14),
    ],
)
def test_a_name_is_found_however_it_is_spelled(
    lexical: LexicalIndex, query: str, number: int
) -> None:
    assert best(lexical, query) == number


def test_the_words_of_a_name_alone_are_not_the_name(lexical: LexicalIndex) -> None:
    assert best(lexical, "generate relationships") == 2
    assert best(lexical, "generate_relationships") == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a plain sentence. And another, with commas: done.", ""),
        ("get_user", "getuser"),
        ("__init__", ""),
        ("getUserName", "get User Name"),
        ("src/app.py:42", "srcapppy"),
        ("std::mem", "stdmem"),
        ("e-mail", "email"),
        ("10.0.0.1", "10\ua78f0\ua78f0\ua78f1"),
        ("HTTPServer.handleRequest", "HTTPServerhandleRequest handle Request"),
    ],
)
def test_what_is_to_be_found_of_names_stands_behind_the_text(text: str, found: str) -> None:
    assert with_names(text).removeprefix(text).strip() == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("抛出GetUser异常", ["抛出", "抛", "出", "getus", "异常", "异", "常", "get", "user"]),
        ("GetUser이", ["getus", "이", "get", "user"]),
        ("见src/支付/app.py", ["见", "src", "支付", "支", "付", "app", "py", "apppi"]),
        ("第1.2版", ["第", "1", "2", "版", "1\ua78f2"]),
        ("东京/大阪", ["东京", "东", "京", "大阪", "大", "阪"]),
    ],
)
def test_a_name_ends_where_what_is_written_without_spaces_begins(
    text: str, words: list[str]
) -> None:
    named = Words()
    assert named.english.analyze(named.spaced(text)) == words


@given(st.text(alphabet="aB1_./-: é猫", max_size=80))
def test_nothing_of_a_text_is_lost(text: str) -> None:
    plain, named = Words(names=False), Words()
    assert with_names(text).startswith(text)
    assert set(plain.told(text)) - set(plain.english.analyze("a i")) <= set(named.told(text))


@given(*[st.text(alphabet="aB1_./-: é猫", max_size=20)] * 2)
def test_texts_that_follow_each_other_have_the_words_of_each(first: str, second: str) -> None:
    together = Counter(with_names(f"{first}\n{second}").split())
    assert together == Counter(with_names(first).split() + with_names(second).split())


def best(index: LexicalIndex, query: str) -> int | None:
    parsed = index.parse(query, {WordField.TEXT: 1.0})
    assert parsed is not None
    found = [index.search_counted(parsed), index.search(parsed, 10)]
    scored = [
        (score, int(doc_id))
        for match in found
        for doc_id, score in zip(match.doc_ids, match.scores, strict=True)
    ]
    return max(scored)[1] if scored else None


@pytest.mark.parametrize(
    ("text", "otherwise"),
    [
        ("15000", "15,000"),
        ("order 15,000", "order 15000"),
        ("1234567 and 1,234", "1,234,567 and 1234"),
        ("007123, 999, 1.234, v1234, 12,34, F-2204", "007123, 999, 1.234, v1234, 12,34, F-2204"),
        ("1" * 5_000, "1" * 5_000),
    ],
)
def test_large_numbers_are_written_with_their_thousands_apart_or_not(
    text: str, otherwise: str
) -> None:
    assert regrouped(text) == otherwise
