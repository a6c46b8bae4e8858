"""The end of a session: what it has learned as an exported model, and as a skill."""
