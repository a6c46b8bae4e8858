"""The kinds of memory that episodes and skills are."""

from mneme_server.engine.corpus.kinds import MemoryKind

EPISODE = MemoryKind("episode", failed=frozenset({"failure"}))
"""Attempts at tasks. The category of one is how it ended, its value the reward."""
SKILL = MemoryKind("skill")
"""What works for a kind of task. The value of one is its success rate."""

MADE = "_made_skills"
"""Among what is forgotten: skills that were made of it, if they are still there."""
