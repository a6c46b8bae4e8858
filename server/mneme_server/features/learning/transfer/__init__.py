"""What one session has learned, taken over by another: how alike their tasks are, and how."""
