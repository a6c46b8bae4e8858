"""One name for one thing: what an argument is called in every tool that has it.

Schemas show these names alone. The other names come from the documents that ask for the tools,
from the API, and from what agents try; they are accepted wherever the argument is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "query": ("topic", "task", "task_description", "text", "search"),
    "session_id": ("session",),
    "agent_id": ("agent",),
    "user_id": ("user",),
    "project": ("project_id", "repo", "repository"),
    "tags": ("labels",),
    "from": ("start_time", "since"),
    "to": ("end_time", "until"),
    "limit": ("page_size", "max_results"),
    "token_budget": ("max_tokens",),
    "min_score": ("min_similarity",),
}
"""The argument's name in snake_case, and its other names."""
