"""OpenTelemetry: what instrumented agents send becomes events of sessions."""
