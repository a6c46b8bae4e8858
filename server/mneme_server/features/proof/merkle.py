"""The Merkle tree of RFC 9162, section 2.1, kept in tiles.

A tile holds up to 256 hashes of one level in eight: tiles of level 0 hold hashes of leaves, those
of level 1 the roots of full tiles of level 0, and so on (C2SP's tlog-tiles). Any root and any
proof is computed from one or two tiles a level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TypeAlias

from mneme_server.common.errors import DataLoss

HASH_BYTES = 32
TILE_LEVELS = 8
TILE_WIDTH = 1 << TILE_LEVELS

TILE = "tile of the log"
"""What errors call the kind of what is damaged."""

Tile: TypeAlias = bytes
"""Up to 256 hashes, one behind the other."""

ReadTile: TypeAlias = Callable[[int, int], Tile]
"""Returns the tile of a level, by its number; empty where there is none."""

EMPTY_ROOT = sha256().digest()


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node from those of its children."""
    return sha256(b"\x01" + left + right).digest()


def width_of(tile: Tile) -> int:
    """Return how many hashes a tile holds."""
    return len(tile) // HASH_BYTES


@lru_cache(maxsize=1024)
def levels_of(tile: Tile) -> tuple[bytes, ...]:
    """Return the hashes of a tile and of all complete subtrees over them, by their level in it, one
    behind the other. Some 1,000 tiles are kept, in 25 MB."""
    levels, pair = [tile], 2 * HASH_BYTES
    while len(levels[-1]) >= pair:
        below = levels[-1]
        whole = len(below) // pair * pair
        levels.append(
            b"".join(
                sha256(b"\x01" + below[at : at + pair]).digest() for at in range(0, whole, pair)
            )
        )
    return tuple(levels)


class Tree:
    """A tree of so many leaves, read from its tiles.

    Args:
        size: how many leaves it has; the tiles may hold more.
        read: reads a tile.
    """

    def __init__(self, size: int, read: ReadTile) -> None:
        self.size = size
        self.read = read
        self._levels: dict[tuple[int, int], Sequence[bytes]] = {}
        self._required: set[tuple[int, int]] = set()  # Tiles that give what stands for them.
        self._ranges: dict[tuple[int, int], bytes] = {}  # Proofs share most of theirs.

    def root(self) -> bytes:
        """Return the hash of the tree."""
        return self._range(0, self.size) if self.size else EMPTY_ROOT

    def leaf(self, index: int) -> bytes:
        """Return the hash of a leaf."""
        return self._complete(0, index)

    def require(self, index: int) -> None:
        """Check that the tiles that a leaf is in give the hashes that stand for them further up.

        Raises:
            DataLoss: one was changed.
        """
        level, number = 0, index >> TILE_LEVELS
        while (number + 1) << TILE_LEVELS * (level + 1) <= self.size:
            if (level, number) not in self._required:
                below = self._levels_of(level, number)[TILE_LEVELS]
                if below != self._complete(TILE_LEVELS * (level + 1), number):
                    raise DataLoss(
                        f"the log is damaged: tile {number} of level {level} was changed",
                        metadata={"kind": TILE, "id": f"{level}/{number}"},
                    )
                self._required.add((level, number))
            level, number = level + 1, number >> TILE_LEVELS

    def inclusion(self, index: int) -> list[bytes]:
        """Return the hashes that join a leaf to the root, from the leaf up.

        Raises:
            IndexError: there is no such leaf.
        """
        if not 0 <= index < self.size:
            raise IndexError(f"leaf {index} of a tree of {self.size}")
        path: list[bytes] = []
        first, last = 0, self.size
        while last - first > 1:
            split = first + _split(last - first)
            if index < split:
                path.append(self._range(split, last))
                last = split
            else:
                path.append(self._range(first, split))
                first = split
        return path[::-1]

    def consistency(self, older: int) -> list[bytes]:
        """Return the hashes that join the root of the first `older` leaves to this one's.

        Raises:
            IndexError: there are not so many leaves.
        """
        if not 0 <= older <= self.size:
            raise IndexError(f"{older} leaves of a tree of {self.size}")
        if older in (0, self.size):
            return []
        path: list[bytes] = []
        first, last, whole = 0, self.size, True
        while older != last:
            split = first + _split(last - first)
            if older <= split:
                path.append(self._range(split, last))
                last = split
            else:
                path.append(self._range(first, split))
                first, whole = split, False
        if not whole:
            path.append(self._range(first, last))
        return path[::-1]

    def _range(self, first: int, last: int) -> bytes:
        """Return the root over the leaves from `first` up to `last`: a subtree of the tree's."""
        known = self._ranges.get((first, last))
        if known is None:
            known = self._ranges[first, last] = self._computed(first, last)
        return known

    def _computed(self, first: int, last: int) -> bytes:
        width = last - first
        if width & (width - 1) == 0:
            level = width.bit_length() - 1
            return self._complete(level, first >> level)
        split = first + _split(width)
        return node_hash(self._range(first, split), self._range(split, last))

    def _complete(self, level: int, number: int) -> bytes:
        """Return the root of the complete subtree of 2**level leaves with that number."""
        tile_level, height = divmod(level, TILE_LEVELS)
        first = number << height
        tile_number, place = divmod(first, TILE_WIDTH)
        levels = self._levels_of(tile_level, tile_number)
        at = (place >> height) * HASH_BYTES
        if height >= len(levels) or at + HASH_BYTES > len(levels[height]):
            raise MissingTile(tile_level, tile_number)
        return levels[height][at : at + HASH_BYTES]

    def _levels_of(self, level: int, number: int) -> Sequence[bytes]:
        levels = self._levels.get((level, number))
        if levels is None:
            levels = self._levels[level, number] = levels_of(self.read(level, number))
        return levels


class MissingTile(DataLoss):
    """A tile of the log is not there, or is too short: the log was cut, or is damaged."""

    def __init__(self, level: int, number: int) -> None:
        super().__init__(
            f"the log is damaged: tile {number} of level {level} is missing or too short",
            metadata={"kind": TILE, "id": f"{level}/{number}"},
        )


def appended(size: int, hashes: Sequence[bytes], read: ReadTile) -> dict[tuple[int, int], Tile]:
    """Return the tiles, by level and number, that change when leaves are added behind `size`.

    `read` is asked for the last tile of a level, when it is not full.
    """
    changed: dict[tuple[int, int], Tile] = {}
    level, new = 0, list(hashes)
    while new:
        number, filled = divmod(size, TILE_WIDTH)
        full: list[bytes] = []
        tile = read(level, number) if filled else b""
        if width_of(tile) != filled:
            raise MissingTile(level, number)
        at = 0
        while at < len(new):
            taken = new[at : at + TILE_WIDTH - filled]
            tile += b"".join(taken)
            changed[level, number] = tile
            if width_of(tile) == TILE_WIDTH:
                full.append(_root_of(tile))
            at += len(taken)
            number, filled, tile = number + 1, 0, b""
        level, size, new = level + 1, size >> TILE_LEVELS, full
    return changed


def _root_of(tile: Tile) -> bytes:
    return levels_of(tile)[TILE_LEVELS]


def _split(width: int) -> int:
    """Return the largest power of two below `width`."""
    return 1 << ((width - 1).bit_length() - 1)
