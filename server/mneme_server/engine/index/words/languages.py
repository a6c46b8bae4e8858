"""The language of a text, by its commonest words: it takes microseconds, and may not know.

Only languages whose words are stemmed apart are told: English, German, French and Spanish. Texts in
others, names and logs are none of these. What is written without spaces needs no stems.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.words import STOP_WORDS

ENGLISH = "en"
STEMMERS: Mapping[str, str] = {"de": "german", "fr": "french", "es": "spanish"}
"""Languages besides English, and what tantivy calls their stemmers."""

_GERMAN = """
aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin
bis bist da dabei damit dann das dass dein deine dem den denn der deren des dessen dich die dies
diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es
etwas euch euer für gegen gibt habe haben hast hat hatte hatten hattest ich ihm ihn ihnen ihr
ihre ihrem ihren ihrer im in indem ins ist ja jede jedem jeden jeder jedes jetzt kann kannst
kein keine keinem keinen keiner können könnte man mein meine meinem meinen meiner mich mir mit
muss müssen nach nein nicht nichts noch nun nur ob oder ohne sein seine seinem seinen seiner
seit sich sie sind so soll sollte sondern um und uns unser unsere unserem unseren unter vom von
vor wann warum was weil welche welchem welchen welcher welches wem wen wenn wer werde werden
weshalb wessen wie wieder wieso will wir wird wo woher wohin wurde wurden während wäre zu zum
zur zwar zwischen über
"""
_FRENCH = """
ai ainsi alors après as au aucun aucune aussi autre autres aux avaient avait avant avec avez
avoir avons c car ce cela celle celui ces cet cette ceux chaque chez combien comme comment d
dans de depuis des donc dont du elle elles en encore entre es est et eu eux faire fait furent
fut il ils j je l la laquelle le lequel les leur leurs lors lorsque lui là m ma mais me mes moi
moins mon même n ne ni non nos notre nous on ont ou où par parce pas pendant peu peut peux plus
pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si soit
sommes son sont sous suis sur t ta te tes toi ton toujours tous tout toute toutes très tu un une
va vers vos votre vous y à étaient était été être
"""
_SPANISH = """
a ahora al algo algunos ante antes aquel aquella aquí así aunque aún cada como con contra cual
cuales cuando cuál cuáles cuándo cuánta cuánto cuántos cómo de del desde donde dos durante dónde
e el ella ellas ellos en entre era eran eres es esa ese eso esos esta estaba estaban estamos
estar estas este esto estos está están fue fueron ha haber había hace hacer han hasta hay he la
las le les lo los me mi mientras mis mucho muy más mí nada ni no nos nosotros nuestra nuestro o
otra otro otros para pero poco por porque pues que quien quienes quién qué se sea ser si sido
sin sobre solo son su sus sí también tan te tenemos tener tengo ti tiene tienen toda todo todos
tu tus tú u un una uno usted ustedes vosotros y ya yo él éramos
"""
_ENGLISH = """
a about after again all also am an and any are as asked at be because been before being but by
can could d did do does doesn done during each every for from get got had has have he her here
him his how i if in into is isn it its just like ll m made me more most my need no not now of
off on once one only or other our out over re s said same she should since so some still such t
than that the their them then there these they this those through to too uh um under until up us
use used using ve very want was we were what when where which while who whom whose why will with
without won would yes yet you your yours
"""
_WORDS = {
    ENGLISH: frozenset(_ENGLISH.split()),
    "de": frozenset(_GERMAN.split()),
    "fr": frozenset(_FRENCH.split()),
    "es": frozenset(_SPANISH.split()),
}
# Letters that hardly occur elsewhere, and how much they count.
_LETTERS = {
    "de": (re.compile("[äöü]"), re.compile("ß")),
    "fr": (re.compile("[àèêùîôâû]"), re.compile("[çœ]")),
    "es": (re.compile("[áíóú]"), re.compile("[ñ¿¡]")),
}
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
"""Chinese characters, for a class of a regular expression."""
UNSPACED = re.compile(f"[\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af{HAN}]+")
"""What is written in one run: kana, Chinese characters and Hangul."""
QUESTION_MARKS = ("?", "？", "؟")
"""What a question ends with, in one script or another."""
HAN_STOPS = (
    "的了是在我你他她它们们这這那有和与與就都也不吗嗎呢吧啊么"
    "麼什哪谁誰怎为為之很把被让讓给給到里裡叫"
)
"""What a question or a sentence is put with in Chinese, where words are not apart."""
_KANA = """
です ます した して ある いる する こと もの これ それ あれ どこ いつ なに なぜ どう どの だれ から
まで では には とは のは のが のを すか たか まし でし いま てい った って とき ため よう ない など
さん ください だっ だけ ので のに あり なっ なる れる られ せん ませ しょ ょう んで こに つで はど
はい こで はな がい はだ ょう した しま いつ つま つで
"""
KANA_STOPS = frozenset(_KANA.split())
"""Such pairs in Japanese."""

STOPS: Mapping[str, frozenset[str]] = {
    ENGLISH: frozenset(STOP_WORDS),
    "de": _WORDS["de"],
    "fr": _WORDS["fr"],
    "es": _WORDS["es"],
}
"""Words that say how a question is put, not what it is about, by its language."""
# One number counts for all: sixteen bits each.
_BITS = 16
_LANGUAGES = tuple(_WORDS)
_COUNTS: dict[str, int] = {}
for _place, _words in enumerate(_WORDS.values()):
    for _word in _words:
        if len(_word) > 1:  # A letter alone is more often a variable, or a part of a name.
            _COUNTS[_word] = _COUNTS.get(_word, 0) + (1 << _BITS * _place)
_KNOWN = frozenset(_COUNTS)
_SPACED = str.maketrans(dict.fromkeys("'’`-_.,:;!?¿¡()[]{}<>\"«»“”„/\\|*#=+0123456789", " "))
_READ = 240
"""Characters that are looked at."""
_ENOUGH = 2
_AHEAD = 2
"""Of English, which quotes more than it is quoted."""
_SHARE = 8
"""Of so many different words, one must be a common one of the language."""


def language_of(text: str) -> str:
    """Return the language of a text, by its beginning; "" when it cannot be told.

    The one that has the most of its common words there: two at least, one word in eight, and more
    than any other. Words of two languages count for both.
    """
    text = composed(text[:_READ]).lower()
    words = set(text.translate(_SPACED).split())
    counted = sum([_COUNTS[word] for word in words & _KNOWN])
    if not counted:
        return ""
    counts = {
        language: counted >> _BITS * place & (1 << _BITS) - 1
        for place, language in enumerate(_LANGUAGES)
    }
    if not text.isascii():
        for language, (some, telling) in _LETTERS.items():
            counts[language] += bool(some.search(text)) + 2 * bool(telling.search(text))
    best = max(counts, key=counts.__getitem__)
    most = counts.pop(best)
    if most < max(_ENOUGH, len(words) / _SHARE) or most <= max(counts.values()):
        return ""
    return "" if most < _AHEAD * counts.get(ENGLISH, 0) else best


def pairs_of(run: str) -> list[str]:
    """Return all pairs of neighbouring characters of what is written in one run; itself, if it is
    a character only."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def spaced_pairs(run: re.Match[str]) -> str:
    """Return the pairs of what is written in one run, with spaces around each."""
    return f" {' '.join(pairs_of(run[0]))} "


def in_pairs(text: str) -> str:
    """Return a text whose words are apart, whatever script they are in: with `spaced_pairs`."""
    return text if text.isascii() else UNSPACED.sub(spaced_pairs, text)


def asks(text: str) -> bool:
    """Tell whether there is a question in a text, by its mark."""
    return any(mark in text for mark in QUESTION_MARKS)


def count_words(text: str) -> int:
    """Return how many words a text has; of what is written in one run every pair counts."""
    return len(in_pairs(text).split())
