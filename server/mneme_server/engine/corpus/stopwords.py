"""English words that say how a question is put, not what it is about."""

from __future__ import annotations

_WORDS = """
a about also an and any are aren as at be been being but by can could couldn d did didn do does
doesn doing don for from had hadn has hasn have haven having he her hers him his how i if in into
is isn it its just ll m me my of on or our ours re s she should shouldn so some t than that the
their theirs them then there these they this those to too ve was wasn we were weren what when where
which while who whom whose why will with won would wouldn you your yours
"""

STOP_WORDS = tuple(_WORDS.split())
