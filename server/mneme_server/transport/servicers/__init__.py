"""One servicer per service: each method converts in, calls one use case, and converts out."""
