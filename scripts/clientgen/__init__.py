"""Generates the methods of MnemeClient and AsyncMnemeClient from the compiled schemas."""
