"""Recall: what bears on a question, out of everything the agent has stored."""
