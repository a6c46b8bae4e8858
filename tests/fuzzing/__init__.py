"""Calls every method with requests that fit its types and press on their limits.

`make fuzz CALLS=1000000` runs it for long, `tests/e2e/test_fuzzing.py` for a few seconds.
"""
