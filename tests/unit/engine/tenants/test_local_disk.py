"""What a server has on its disk is looked through again only where somebody used it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mneme_server.engine.tenants import local_disk
from mneme_server.engine.tenants.local_disk import LocalDisk
from mneme_server.engine.tenants.registry import TenantRegistry


def test_what_nobody_used_since_it_was_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: Counter[str] = Counter()
    size = local_disk._size

    def counted(folder: Path) -> int:
        measured[folder.name] += 1
        return size(folder)

    monkeypatch.setattr(local_disk, "_size", counted)
    for name in ("quiet", "used"):
        (tmp_path / name / "index").mkdir(parents=True)
        (tmp_path / name / "index" / "part").write_bytes(bytes(1_000))
    opener: Callable[[str], Any] = str
    tenants: TenantRegistry[Any] = TenantRegistry(opener, memory_bytes=1, idle_seconds=3600)
    try:
        disk = LocalDisk(tmp_path, tenants, 2_000)
        disk.keep_within_bounds()
        os.utime(tmp_path / "used", (2_000_000_000, 2_000_000_000))  # As when it is opened.
        disk.keep_within_bounds()
        assert measured == {"quiet": 1, "used": 2}
        (tmp_path / "used" / "index" / "more").write_bytes(bytes(1_000))
        os.utime(tmp_path / "used", (2_000_000_001, 2_000_000_001))
        disk.keep_within_bounds()
        left = [name for name in ("quiet", "used") if (tmp_path / name / "index").exists()]
        assert left == ["used"], "the one that was used longest ago makes room"
    finally:
        tenants.close()
