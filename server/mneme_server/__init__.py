"""Mneme: the memory of AI agents, served over gRPC."""
