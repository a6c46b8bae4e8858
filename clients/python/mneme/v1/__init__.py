"""The wire's messages and stubs, generated from proto/mneme/v1."""
