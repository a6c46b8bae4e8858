"""Whose turn it is: calls, work behind them, and long jobs."""
