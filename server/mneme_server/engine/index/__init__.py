"""The indexes of one tenant: attributes as columns, vectors with FAISS, words with tantivy.

`tenant_index.TenantIndex` puts them together behind `mneme_server.engine.corpus.ports.CorpusIndex`.
Everything here can be rebuilt from the database; the files under `index/` only make opening fast.
The package itself imports none of it: much of the server asks it for a word's language, and FAISS
is wanted when a tenant is opened.
"""
