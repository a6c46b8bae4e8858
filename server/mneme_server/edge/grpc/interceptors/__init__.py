"""The layers around every call and the checks of its messages, one per file."""
