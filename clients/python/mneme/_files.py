"""Files that are written whole or not at all."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO


@contextmanager
def replacing(file: Path) -> Iterator[TextIO]:
    """A text file to write, as `replacing_bytes` has it."""
    with replacing_bytes(file) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", line_buffering=stream.isatty())
        try:
            yield text
        finally:
            text.detach()  # Hands on what is written; whoever opened it closes it.


@contextmanager
def replacing_bytes(file: Path) -> Iterator[BinaryIO]:
    """A file to write; it takes the place of `file` when the block ends without an error.

    Others may read `file` at any moment, and find what was there before or all that is new. Links
    and permissions stay. What is no regular file (a pipe, a terminal) is written as it comes.

    Raises:
        OSError: the file cannot be written.
    """
    target = file.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            yield stream
        return
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(mode)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)  # There is no way to read it but to set it.
    os.umask(mask)
    return mask
