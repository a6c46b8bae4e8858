"""Whether a learned policy can be trusted: what it is worth on data that it did not learn from, and
when it may answer in the place of a baseline."""
