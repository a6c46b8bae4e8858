"""Brings recorded conversations and events into a server.

`reading` takes files apart into records, `transcripts` and `native` turn a record into a planned
session, and `recording` sends what was planned.
"""
