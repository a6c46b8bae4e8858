"""Between the wire's messages and the domain."""
