"""Mneme for MCP hosts: its memory as tools, resources and prompts."""
