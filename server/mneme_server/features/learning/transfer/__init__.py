"""Transfer between sessions: how alike their tasks are, and what is taken over."""
