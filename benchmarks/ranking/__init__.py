"""How well recall ranks, on sets of several kinds of text, beside its two sides alone."""
