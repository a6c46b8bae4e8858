"""Files that commands write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from mneme._files import replacing
from mneme.cli.exits import InputError


@contextmanager
def written(file: Path | None) -> Iterator[TextIO]:
    """The file, whole or not at all; without one, standard output.

    Raises:
        InputError: it cannot be written.
    """
    if file is None:
        yield sys.stdout
        return
    try:
        with replacing(file) as target:
            yield target
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
