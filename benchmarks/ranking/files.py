"""Which files of sets are given: by options, or by variables."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

OPTIONS = {
    "locomo": ("MNEME_LOCOMO_FILE", "a file in LoCoMo's format: chats of two people"),
    "beam": ("MNEME_BEAM_FILE", "BEAM, converted: a user's questions, an assistant's answers"),
    "qmsum": ("MNEME_QMSUM_FILE", "QMSum, converted: transcribed meetings"),
    "facts": ("MNEME_FACTS_FOLDER", "a folder of users' facts with questions, a file for each"),
    "tau-bench": ("TAU_BENCH_FILE", "tau-bench's trajectories: attempts at tasks"),
}
"""The sets by name: the variable that names the file, and what it is."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each set."""
    for name, (variable, about) in OPTIONS.items():
        parser.add_argument(
            f"--{name}", type=Path, metavar="FILE", default=os.environ.get(variable) or None,
            help=f"{about} ({variable})",
        )  # fmt: skip


def files_of(given: argparse.Namespace) -> dict[str, Path]:
    """Return the files that are given, by set.

    Raises:
        SystemExit: one does not exist.
    """
    files = {name: getattr(given, name.replace("-", "_")) for name in OPTIONS}
    found = {name: Path(file) for name, file in files.items() if file is not None}
    for file in found.values():
        if not file.exists():
            raise SystemExit(f"{file} does not exist")
    return found
