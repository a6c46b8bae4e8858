"""What both clients share: the connection, the conversion of arguments, retries, errors."""
