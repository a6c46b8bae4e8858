"""Agents that know nothing of Mneme, as scripts: tests run them in processes of their own."""
