"""The messages and enums of the API, by their plain names: `from mneme.types import NewEvent`."""

from mneme._generated.types import *  # noqa: F403
