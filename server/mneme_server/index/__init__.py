"""The indexes of one tenant: attributes as columns, vectors with FAISS, words with tantivy.

`TenantIndex` puts them together behind `mneme_server.corpus.ports.CorpusIndex`. Everything here can
be rebuilt from the database; the files under `index/` only make opening fast.
"""

from mneme_server.index.parts import IndexStats
from mneme_server.index.settings import IndexSettings
from mneme_server.index.tenant_index import TenantIndex

__all__ = ["IndexSettings", "IndexStats", "TenantIndex"]
