"""`mneme import` of files packed with gzip or Zstandard, whole, cut and damaged."""

from __future__ import annotations

import builtins
import gzip
import json
import os
import shutil
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from mneme.importing import source
from support.transcripts.written import WRITERS
from unit.cli.command import mneme
from unit.cli.memory import Memory


def test_a_packed_file_without_what_unpacks_it_names_the_extra(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = WRITERS["codex"](tmp_path, 1)
    assert file.suffix == ".zst"
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith(("zstandard", "compression")):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    result = mneme("import", str(file))
    assert result.code == 1
    assert ".whl[import]" in result.err


def test_a_packed_file_that_is_cut_off_is_read_up_to_there(memory: Memory, tmp_path: Path) -> None:
    (file,) = WRITERS["codex"](tmp_path, 1)
    file.write_bytes(file.read_bytes()[:-200] + b"\xff" * 200)
    result = mneme("import", str(file))
    assert result.code == 1
    assert "cannot be unpacked any further" in result.err or "not UTF-8" in result.err


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("left", [8, 0.5, -1])
def test_a_packed_file_that_is_cut_inside_its_first_block_is_told_as_cut(
    memory: Memory, tmp_path: Path, left: float, in_folder: bool
) -> None:
    (file,) = WRITERS["codex"](tmp_path, 1)
    packed = file.read_bytes()
    file.write_bytes(packed[: int(left if abs(left) >= 1 else left * len(packed))])
    result = mneme("import", str(tmp_path if in_folder else file))
    assert result.code == 1
    assert "cannot be unpacked any further" in result.err


def test_a_packed_file_of_many_frames_comes_in_whole(memory: Memory, tmp_path: Path) -> None:
    import zstandard

    (file,) = WRITERS["codex"](tmp_path, 1)
    assert mneme("import", "--json", str(file)).code == 0
    plain = zstandard.ZstdDecompressor().stream_reader(file.read_bytes()).read()
    frames = [plain[n : n + 1000] for n in range(0, len(plain), 1000)]
    file.write_bytes(b"".join(map(zstandard.ZstdCompressor().compress, [b"", *frames, b""])))
    again = mneme("import", "--json", str(file)).documents[0]
    assert (again["events"], again["duplicates"]) == (0, len(memory.events))


def bomb(folder: Path, packer: str, beginning: bytes) -> Path:
    """A file of three megabytes or less that unpacks to three thousand, on one line."""
    import zstandard

    file = folder / f"bomb.jsonl.{packer}"
    pack: Any = zlib.compressobj(9, wbits=31)
    if packer == "zst":
        pack = zstandard.ZstdCompressor().compressobj()
    with file.open("wb") as out:
        out.write(pack.compress(beginning))
        for _ in range(600):
            out.write(pack.compress(b"x" * 1_000_000))
        out.write(pack.flush())
    assert file.stat().st_size < 620_000
    return file


@pytest.mark.parametrize("packer", ["gz", "zst"])
@pytest.mark.parametrize("beginning", [b'{"role": "user", "content": "', b"[\n1,\n"])
def test_a_bomb_ends_with_a_sentence(
    memory: Memory, tmp_path: Path, packer: str, beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_MOST_UNPACKED", 32 * 1024 * 1024)
    tracemalloc.start()
    try:
        result = mneme("import", str(bomb(tmp_path, packer, beginning)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.code == 1
    assert "unpacks to more than 200 times its size" in result.err
    assert len(result.err) < 2_000
    assert peak < 300_000_000


def pack_with_gzip(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*.*") if "tool-results" not in path.parts]
    return [packed_with_gzip(path) for path in files if path.is_file()]


def packed_with_gzip(file: Path) -> Path:
    packed = file.with_name(f"{file.name}.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    return packed


def test_what_is_packed_with_gzip_comes_in_as_unpacked(memory: Memory, tmp_path: Path) -> None:
    for form in ("claude-code", "mem0", "swe-agent"):
        (tmp_path / form).mkdir()
        WRITERS[form](tmp_path / form, 1)
    plain = mneme("import", "--json", str(tmp_path)).documents[0]
    events, sessions = dict(memory.events), dict(memory.sessions)
    memory.events.clear()
    memory.sessions.clear()
    pack_with_gzip(tmp_path)
    packed = mneme("import", "--json", str(tmp_path)).documents[0]
    assert (packed["events"], len(packed["files"])) == (plain["events"], len(plain["files"]))
    assert (set(memory.events), set(memory.sessions)) == (set(events), set(sessions))


def test_a_packed_session_brings_its_packed_subagents(memory: Memory, tmp_path: Path) -> None:
    (session,) = WRITERS["claude-code"](tmp_path, 1)
    packed = pack_with_gzip(tmp_path)
    named = mneme("import", "--json", f"{session}.gz").documents[0]
    assert {file["file"] for file in named["files"]} == set(map(str, packed))
    assert len(packed) > 1


def test_a_session_brings_no_copies_that_lie_beside_its_subagents(
    memory: Memory, tmp_path: Path
) -> None:
    """An editor's, or one that is still being packed: it may hold what was taken out since."""
    import zstandard

    (session,) = WRITERS["claude-code"](tmp_path, 1)
    (agent,) = (tmp_path / session.stem).glob("subagents/*.jsonl")
    for ending in (".bak", ".tmp", "~", ".gz.tmp"):
        shutil.copy(agent, f"{agent}{ending}")
    packed = agent.with_name("agent-packed.jsonl.zst")
    packed.write_bytes(zstandard.compress(agent.read_bytes()))
    named = mneme("import", "--json", str(session)).documents[0]
    assert {file["file"] for file in named["files"]} == set(map(str, (session, agent, packed)))


def test_a_packed_session_of_claude_code_is_called_as_its_file_is(
    memory: Memory, tmp_path: Path
) -> None:
    resumed = "0c4ba7f6-7a5c-4d40-8a39-3b5b5c5f7e11"
    said = {"role": "user", "content": "hello"}
    time = "2026-03-01T12:00:00Z"
    line = {"type": "user", "uuid": "u", "sessionId": "earlier", "timestamp": time, "cwd": "/home"}
    file = tmp_path / f"{resumed}.jsonl"
    file.write_text(json.dumps(line | {"message": said}))
    packed = packed_with_gzip(file)
    os.utime(packed, (0, 0))
    mneme("import", str(packed))
    assert list(memory.ended) == [resumed]


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("left", [2, 8, 0.5, -1])
def test_a_file_packed_with_gzip_that_is_cut_is_read_up_to_there_and_told_as_cut(
    memory: Memory, tmp_path: Path, left: float, in_folder: bool
) -> None:
    chats = [[{"role": "user", "content": os.urandom(9000).hex()}] for _ in range(9)]
    file = tmp_path / "chats.jsonl"
    file.write_text("\n".join(json.dumps({"messages": chat}) for chat in chats))
    file = packed_with_gzip(file)
    packed = file.read_bytes()
    file.write_bytes(packed[: int(left if abs(left) >= 1 else left * len(packed))])
    result = mneme("import", str(tmp_path if in_folder else file))
    assert result.code == 1
    assert "cannot be unpacked any further" in result.err
    assert bool(memory.events) == (abs(left) < 2)


@pytest.mark.parametrize("byte", [2, 12, -5])
def test_a_file_packed_with_gzip_that_is_damaged_is_told(
    memory: Memory, tmp_path: Path, byte: int
) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "hello"}]))
    file = packed_with_gzip(file)
    packed = bytearray(file.read_bytes())
    packed[byte] ^= 0xFF
    file.write_bytes(packed)
    result = mneme("import", str(file))
    assert result.code == 1
    assert "cannot be unpacked any further" in result.err
