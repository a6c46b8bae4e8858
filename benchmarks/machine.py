"""What figures depend on: the machine, the versions and the commit."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = (
    "grpcio", "protobuf", "faiss-cpu", "tantivy", "onnxruntime", "tokenizers", "numpy",
    "SQLAlchemy", "sentence-transformers", "torch",
)  # fmt: skip


def facts(root: Path) -> dict[str, str]:
    """Return what to print above the figures; `root` is the repository."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(root),
        "processor": f"{_processor()}, {len(os.sched_getaffinity(0))} cores",
        "memory": f"{_memory_gib():.1f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "load before the run": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{package: _version(package) for package in _PACKAGES},
    }


@dataclass(frozen=True)
class Load:
    """What the machine did since `start`, to tell how much others disturbed the figures."""

    busy_s: float
    own_s: float
    at: float

    @classmethod
    def start(cls) -> Load:
        """Begin now."""
        return cls(_busy_s(), _own_s(), time.monotonic())

    def others(self) -> float:
        """Return how many cores other programs kept busy on average.

        What this process started counts as its own once it has ended.
        """
        busy = (_busy_s() - self.busy_s) - (_own_s() - self.own_s)
        return max(0.0, busy / (time.monotonic() - self.at))


def _busy_s() -> float:
    """Return the processor time that all programs used since the machine started."""
    lines = _lines("/proc/stat")
    if not lines:
        return 0.0
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, lines[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit(root: Path) -> str:
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return "unknown"

    def ask(*arguments: str) -> str:
        answer = subprocess.run(
            [git, "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
        return answer.stdout.strip()

    changed = ask("status", "--porcelain", "--untracked-files=no", "--", "server", "clients")
    return ask("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
