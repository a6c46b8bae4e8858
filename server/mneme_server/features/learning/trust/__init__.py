"""Trust in a learned policy: what it is worth on data that it did not learn from, and when it may
answer in the place of another.
"""
