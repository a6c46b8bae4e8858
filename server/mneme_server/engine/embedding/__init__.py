"""Text to vectors: one embedder per file behind the port in `port.py`.

`factory.build_embedder` picks one from a setting; `batcher.MicroBatcher` and `cache.CachedEmbedder`
wrap any of them. Heavy libraries (onnxruntime, torch, sentence-transformers) are imported by the
file that needs them, when it does.
"""
