"""Between the messages of cause and effect and the domain."""
