"""The measurements, one subject a file. Each takes the context and returns rows."""
