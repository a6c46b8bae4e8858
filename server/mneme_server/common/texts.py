"""Texts as they are compared, whichever way they are written."""

from __future__ import annotations

import re
import unicodedata

# Letters, marks and a symbol that show nothing: Unicode's Default_Ignorable_Code_Point where its
# category does not say so, and the Braille pattern without dots.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


def composed(text: str) -> str:
    """Return a text as it is compared: with the characters of Unicode's form NFC.

    "é" may be one character, or an "e" and an accent (NFD, as in names of files on macOS): to a
    reader, and to whoever searches, that is one text. What is stored stays as it was given; only
    names and ids, by which something is found again, are kept in this form.
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_blank(text: str) -> bool:
    """Tell whether nothing of a text can be seen: it is empty, or of spaces and of characters that
    only control or format others. (Characters that Unicode got since are seen.)"""
    return all(
        unicodedata.category(character) in ("Zs", "Zl", "Zp", "Cc", "Cf")
        or _UNSEEN.match(character) is not None
        for character in text
    )
