"""Hooks of coding agents: they remember without having to remember to remember.

A host (Claude Code, Codex) runs a command when a session starts, before it is compacted and when it
ends. `installing` writes those commands into the host's settings, `running` is what they do.
"""
