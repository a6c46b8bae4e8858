"""What a reader of a format is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from mneme.importing.plan import Defaults, Planned, UnusableError
from mneme.importing.reading import TOO_DEEP, Broken, Place, Record
from mneme.importing.source import Source

# What a value of another kind than the format says makes Python raise.
_MISFITS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


class Reader(ABC):
    """Turns the records of one file into planned sessions.

    An event must be final when it is planned, because a server refuses another content under a
    known id; and its id must come from the source's own ids or from its place in what only grows,
    so that reading a file again after it grew adds only what is new.

    Args:
        source: the file.
        defaults: what the caller says of everything.
    """

    #: What `--format` calls it.
    name: ClassVar[str]
    #: What people call it, in the plural.
    title: ClassVar[str]
    #: The records of a file belong together: when one is recognised, all go to this reader.
    by_line: ClassVar[bool] = False

    def __init__(self, source: Source, defaults: Defaults) -> None:
        self.source = source
        self.defaults = defaults

    @classmethod
    @abstractmethod
    def detects(cls, value: Any) -> int:
        """How sure it is that a record is of this format, from 0 (it is not) to 100."""

    @abstractmethod
    def read(self, record: Record) -> Iterable[Planned | Broken]:
        """Plan what a record holds, and tell what of it cannot be used.

        Raises:
            UnusableError: nothing of it can be used.
        """

    def finish(self) -> Iterable[Planned | Broken]:
        """Plan what could only be told at the end of the file."""
        return ()

    def companions(self) -> Iterable[Path]:
        """Other files that belong to this one, to be imported after it."""
        return ()


def attempted(place: Place, found: Iterable[Planned | Broken]) -> Iterator[Planned | Broken]:
    """What is planned, up to where that cannot go on, and then why.

    Files of other programs hold what no reader foresees; that is no reason to leave out the rest,
    nor to be silent.

    Args:
        place: where it was read.
        found: plans it as it is asked for.
    """
    try:
        yield from found
    except UnusableError as error:
        yield Broken(place, str(error))
    except RecursionError:  # What the decoder still took, where a level is one call.
        yield Broken(place, TOO_DEEP)
    except _MISFITS as error:
        yield Broken(place, f"does not keep to its format: {type(error).__name__}: {error}")
