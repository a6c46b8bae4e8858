"""Questions and texts in other languages than English, on real servers with real models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api
from support.e5 import needs_e5
from support.making import event, recall, record
from support.server import LocalServer, local_server

LEXICAL = recall_pb.RECALL_MODE_LEXICAL
DENSE = recall_pb.RECALL_MODE_DENSE
HYBRID = recall_pb.RECALL_MODE_HYBRID

TEXTS = {
    "de-invoice": "Die Rechnungen für den Drucker wurden gestern von der Buchhaltung bezahlt",
    "de-server": "Wir haben den Server am Sonntag neu gestartet, weil der Speicher voll war",
    "fr-meeting": "Les réunions du lundi ont été annulées par la directrice",
    "fr-contract": "Le contrat avec le fournisseur se termine à la fin de l'année",
    "es-rent": "Los alquileres de la oficina se pagan el primer día de cada mes",
    "es-password": "Las contraseñas de los usuarios se cambiaron después del ataque",
    "zh-cat": "我们的猫昨天晚上把客厅的花瓶打碎了",
    "zh-database": "数据库已经迁移到法兰克福的机房",
    "ja-certificate": "昨日の夜に決済サーバーの証明書が切れたので再発行しました",
    "ja-travel": "来月の出張は大阪のホテルを予約済みです",
    "en-migration": "The migrations were failing on the staging database",
}
BY_WORDS = [
    ("Wann wurde die Rechnung bezahlt?", "de-invoice"),
    ("Warum wurden die Server neu gestartet?", "de-server"),
    ("Qui a annulé la réunion du lundi ?", "fr-meeting"),
    ("Quand se terminent les contrats ?", "fr-contract"),
    ("¿Cuándo se paga el alquiler?", "es-rent"),
    ("¿Por qué se cambió la contraseña?", "es-password"),
    ("花瓶是谁打碎的？", "zh-cat"),
    ("猫", "zh-cat"),
    ("数据库在哪里？", "zh-database"),
    ("証明書はいつ切れましたか", "ja-certificate"),
    ("大阪のホテルはどこですか", "ja-travel"),
    ("which migration failed?", "en-migration"),
]
FOREIGN = [
    "Wie lange muss das Brot backen?",
    "Qui a gagné le championnat de football ?",
    "¿Cuánto tarda en hornearse el pan?",
    "面包要烤多久？",
    "サッカーの優勝はどこですか",
    "What did the biologist say about the coral reef?",
    "et alors",
    "的",
    "asdfgh",
]
BY_MEANING = [
    ("Welche Dokumente hat die Finanzabteilung beglichen?", "de-invoice"),
    ("Quand expire l'accord avec le vendeur ?", "fr-contract"),
    ("¿Qué pasó con las claves de acceso tras el incidente de seguridad?", "es-password"),
    ("宠物闯了什么祸？", "zh-cat"),
    ("次の旅行で泊まる場所は？", "ja-travel"),
    ("Where do we stay on the trip next month?", "ja-travel"),
    ("Wohin ist die Datenbank umgezogen?", "zh-database"),
    ("How often does the office pay rent?", "es-rent"),
]


def filled(server: LocalServer) -> Api:
    api = server.keys.tenant("languages")
    events = [event(text, name, id=name) for name, text in TEXTS.items()]
    record(api, *events, wait=True)
    return api


@pytest.fixture(scope="module")
def stock(server: LocalServer) -> Api:
    return filled(server)


@pytest.fixture(scope="module")
def e5(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with local_server(tmp_path_factory.mktemp("e5"), embedder="e5") as running:
        yield filled(running)


def first(api: Api, question: str, mode: int) -> str:
    results = recall(api, question, mode=mode, limit=1).results
    return results[0].source_id if results else ""


@pytest.mark.parametrize(("question", "answer"), BY_WORDS)
def test_a_question_in_its_language_finds_the_answer_by_other_forms_of_its_words(
    question: str, answer: str, stock: Api
) -> None:
    assert first(stock, question, LEXICAL) == answer
    assert first(stock, question, HYBRID) == answer


@needs_e5
@pytest.mark.parametrize(("question", "answer"), BY_WORDS)
def test_the_model_for_other_languages_finds_what_words_find(
    question: str, answer: str, e5: Api
) -> None:
    assert first(e5, question, HYBRID) == answer


@needs_e5
@pytest.mark.parametrize(("question", "answer"), BY_MEANING)
def test_the_model_for_other_languages_finds_what_no_word_tells(
    question: str, answer: str, e5: Api
) -> None:
    assert first(e5, question, DENSE) == answer
    assert first(e5, question, HYBRID) == answer


def sure(api: Api, question: str) -> float:
    answer = recall(api, question, limit=1)
    assert answer.HasField("confidence")
    return answer.confidence


@needs_e5
@pytest.mark.parametrize("question", [question for question, _ in BY_WORDS])
def test_the_model_for_other_languages_is_sure_of_what_is_there(question: str, e5: Api) -> None:
    assert sure(e5, question) >= 0.7


@needs_e5
@pytest.mark.parametrize("question", FOREIGN)
def test_the_model_for_other_languages_is_not_sure_of_what_is_foreign(
    question: str, e5: Api
) -> None:
    assert sure(e5, question) <= 0.05
