"""Explanations of choices: what speaks for an action, and what would have to differ."""
