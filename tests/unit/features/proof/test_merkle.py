"""The Merkle tree in tiles: as RFC 9162 says, whatever the number of leaves."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.proof.merkle import (
    EMPTY_ROOT,
    TILE_WIDTH,
    MissingTile,
    Tile,
    Tree,
    appended,
    leaf_hash,
    node_hash,
    width_of,
)

# The leaves and roots that implementations of RFC 6962 have been tested with from the first on.
LEAVES = [
    bytes.fromhex(leaf)
    for leaf in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]  # fmt: skip
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


class Tiles(dict[tuple[int, int], Tile]):
    """Tiles in memory, and how many leaves they hold."""

    size = 0

    def append(self, hashes: list[bytes]) -> None:
        self |= appended(self.size, hashes, self.read)
        self.size += len(hashes)

    def read(self, level: int, number: int) -> Tile:
        return self.get((level, number), b"")

    def tree(self, size: int | None = None) -> Tree:
        return Tree(self.size if size is None else size, self.read)


def root_of(hashes: list[bytes]) -> bytes:
    """The definition of RFC 9162, section 2.1.1, word for word."""
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256().digest()
    split = 1
    while split * 2 < len(hashes):
        split *= 2
    return node_hash(root_of(hashes[:split]), root_of(hashes[split:]))


def hashes(count: int) -> list[bytes]:
    return [leaf_hash(number.to_bytes(4, "big")) for number in range(count)]


def test_the_roots_of_the_known_leaves_are_the_known_ones() -> None:
    tiles = Tiles()
    assert tiles.tree().root() == EMPTY_ROOT
    for leaf, root in zip(LEAVES, ROOTS, strict=True):
        tiles.append([leaf_hash(leaf)])
        assert tiles.tree().root().hex() == root


@given(st.lists(st.integers(1, 700), min_size=1, max_size=4))
def test_a_tree_that_grew_in_any_steps_has_the_root_of_its_leaves(steps: list[int]) -> None:
    tiles, given_ = Tiles(), hashes(sum(steps))
    for step in steps:
        tiles.append(given_[tiles.size : tiles.size + step])
        assert tiles.tree().root() == root_of(given_[: tiles.size])
    older = steps[0]
    assert tiles.tree(older).root() == root_of(given_[:older])


def test_upper_levels_hold_the_roots_of_full_tiles() -> None:
    tiles = Tiles()
    tiles.append(hashes(TILE_WIDTH * TILE_WIDTH + 1))
    assert sorted(level for level, _ in tiles if level) == [1, 2]
    assert width_of(tiles[1, 0]) == TILE_WIDTH
    assert tiles[2, 0] == root_of(hashes(TILE_WIDTH * TILE_WIDTH))


def test_a_proof_reads_a_tile_or_two_a_level() -> None:
    tiles, read = Tiles(), list[tuple[int, int]]()
    tiles.append(hashes(70_000))

    def counted(level: int, number: int) -> Tile:
        read.append((level, number))
        return tiles.read(level, number)

    assert len(Tree(70_000, counted).inclusion(12_345)) == 17
    assert len(read) <= 5


@pytest.mark.parametrize("index", [-1, 3])
def test_there_is_no_proof_of_a_leaf_that_is_not_there(index: int) -> None:
    tiles = Tiles()
    tiles.append(hashes(3))
    with pytest.raises(IndexError):
        tiles.tree().inclusion(index)
    with pytest.raises(IndexError):
        tiles.tree().consistency(4)


def test_a_tile_that_is_gone_or_cut_is_named() -> None:
    tiles = Tiles()
    tiles.append(hashes(600))
    del tiles[0, 1]
    with pytest.raises(MissingTile, match="tile 1 of level 0"):
        tiles.tree().inclusion(300)
    tiles[0, 2] = tiles[0, 2][:-32]
    with pytest.raises(MissingTile, match="tile 2 of level 0"):
        tiles.tree().root()
    with pytest.raises(MissingTile, match="tile 2 of level 0"):
        tiles.append(hashes(1))
