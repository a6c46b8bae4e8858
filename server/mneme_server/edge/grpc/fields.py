"""Where a request has what a use case says is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mneme_server.common.errors import MnemeError


@contextmanager
def fields(**paths: str) -> Iterator[None]:
    """Name the request's fields in errors of the use case that is called inside.

        with fields(id="lessons[{item}].id"):
            self._lessons.import_(…)

    Args:
        paths: by the use case's word for it, the path in the request; `{item}` is the error's.
    """
    try:
        yield
    except MnemeError as error:
        if error.field in paths:
            error.field = paths[error.field].format(item=error.item)
        raise
