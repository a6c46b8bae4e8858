"""Memories close to one that comes in, for its caller to see what it may replace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.memory.kinds import MEMORY
from mneme_server.features.memory.model import FoundMemory, Memory
from mneme_server.features.memory.ports import MemoriesUnit
from mneme_server.features.recall.cosines import USUAL, Scale

_SIMILAR = 0.4
"""Cosine, of the default model, from which two texts are about the same."""


@dataclass(frozen=True, slots=True)
class Similar:
    """Finds memories that hold and are close to one, of the same user.

    Of no user, they are those of no user that have the same agent and project, where it has some.
    """

    scale: Scale = USUAL
    foreground: Foreground = field(default_factory=Foreground)

    def __call__(
        self, tenant: OpenTenant[MemoriesUnit], memory: Memory, vector: Matrix | None, limit: int
    ) -> Sequence[FoundMemory] | None:
        """Return the closest, best first; none without a limit. There are some more than `limit`:
        it may be one of them itself, and supersede others.

        None without the memory's vector (d,): they are not known.
        """
        if not limit:
            return ()
        if vector is None:
            return None
        theirs = DocumentFilter(
            kinds=frozenset({MEMORY}),
            user_id=memory.user_id,
            of_no_user=not memory.user_id,
            agent_id="" if memory.user_id else memory.agent_id,
            project="" if memory.user_id else memory.project,
            include_archived=False,
        )
        with self.foreground.computing():
            index = tenant.index
            more = limit + len(memory.supersedes) + 1
            hits = index.search_dense(vector, more, index.select(theirs), exact=False)
            least = self.scale.of_usual(_SIMILAR)
            doc_ids = index.columns.doc_id[hits.rows].tolist()
            cosines = dict(zip(doc_ids, hits.scores.tolist(), strict=True))
            near = [doc_id for doc_id in doc_ids if cosines[doc_id] >= least]
            with tenant.read() as unit:
                memories = unit.remembered.by_document(near)
        return [FoundMemory(memories[one], cosines[one]) for one in near if one in memories]
