"""Algorithms that learn with neural networks: asked in NumPy, trained with torch elsewhere."""
