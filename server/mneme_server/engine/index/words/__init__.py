"""The words of texts and queries: their language, their stems, their index and its ranking."""
