"""Whether Reflect says what is so, of records of which the truth is known."""
