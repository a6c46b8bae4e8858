"""What may happen to a file, by name. Each takes the file and a source of chance."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path

Fault = Callable[[Path, random.Random], None]

_PAGE = 4096


def flip_bytes(file: Path, rng: random.Random) -> None:
    """Change one to eight bytes."""
    size = file.stat().st_size
    with file.open("r+b") as opened:
        for _ in range(rng.randint(1, 8)) if size else ():
            place = rng.randrange(size)
            opened.seek(place)
            before = opened.read(1)[0]
            opened.seek(place)
            opened.write(bytes([before ^ rng.randint(1, 255)]))


def flip_a_letter(file: Path, rng: random.Random) -> None:
    """Change a byte among letters: what was written there last, most likely."""
    data = file.read_bytes()
    places = [n for n in rng.sample(range(len(data)), min(400, len(data))) if 32 <= data[n] < 127]
    if places:
        with file.open("r+b") as opened:
            opened.seek(rng.choice(places))
            opened.write(bytes([rng.randint(128, 255)]))


def truncate(file: Path, rng: random.Random) -> None:
    """Cut it off somewhere."""
    size = file.stat().st_size
    os.truncate(file, rng.randrange(size) if size else 0)


def empty(file: Path, _rng: random.Random) -> None:
    """Leave nothing in it."""
    os.truncate(file, 0)


def zero_a_page(file: Path, rng: random.Random) -> None:
    """Overwrite a page with zeros, as a lost write does."""
    pages = max(1, file.stat().st_size // _PAGE)
    with file.open("r+b") as opened:
        opened.seek(rng.randrange(pages) * _PAGE)
        opened.write(bytes(_PAGE))


def garbage(file: Path, rng: random.Random) -> None:
    """Overwrite a stretch with noise."""
    size = max(1, file.stat().st_size)
    with file.open("r+b") as opened:
        opened.seek(rng.randrange(size))
        opened.write(rng.randbytes(rng.randint(1, 2 * _PAGE)))


def delete(file: Path, _rng: random.Random) -> None:
    """Remove it."""
    file.unlink()


def append(file: Path, rng: random.Random) -> None:
    """Add noise at its end."""
    with file.open("ab") as opened:
        opened.write(rng.randbytes(rng.randint(1, _PAGE)))


FAULTS: Mapping[str, Fault] = {
    fault.__name__: fault
    for fault in (
        flip_bytes, flip_a_letter, truncate, empty, zero_a_page, garbage, delete, append,
    )
}  # fmt: skip
