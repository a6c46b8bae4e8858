"""Alerts: rules that watch what is recorded, and tell somebody."""
