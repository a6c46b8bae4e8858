"""Imports of what was recorded before: sessions of agents with their events, and episodes."""
