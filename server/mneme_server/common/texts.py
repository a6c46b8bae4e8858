"""What texts are, whichever way they are written."""

from __future__ import annotations

import unicodedata


def is_blank(text: str) -> bool:
    """Tell whether nothing of a text can be seen: it is empty, or of spaces and of characters that
    only control or format others."""
    return all(unicodedata.category(character)[0] in "ZC" for character in text)
