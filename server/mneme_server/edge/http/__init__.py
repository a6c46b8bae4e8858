"""The HTTP edge: the same calls over REST and Connect, and what describes them."""
