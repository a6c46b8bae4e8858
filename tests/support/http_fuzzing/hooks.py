"""What schemathesis must be told of; it runs in an environment of its own."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_context: object, value: object) -> bytes:
    """Send what was made of lines of JSON as it is."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
