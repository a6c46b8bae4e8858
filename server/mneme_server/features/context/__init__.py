"""Context: what sessions came to, and how one picks up where another left off."""
