"""Between the messages of learning and the domain."""
