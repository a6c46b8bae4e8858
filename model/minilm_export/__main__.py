"""The command: `python -m minilm_export --model-dir DIR`."""

import argparse
import sys
from pathlib import Path
from typing import get_args

from mneme_server.engine.embedding.minilm import MODEL_NAME, Precision

from minilm_export.exporting import ExportError, ensure_exported


def main(arguments: list[str] | None = None) -> int:
    """Export from the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m minilm_export",
        description=f"Write {MODEL_NAME} as the server loads it, where it is missing or outdated.",
    )
    parser.add_argument(
        "--model-dir", type=Path, required=True, help="where exported models are kept"
    )
    parser.add_argument("--precision", choices=get_args(Precision), default="int8")
    options = parser.parse_args(arguments)
    try:
        model = ensure_exported(
            options.model_dir, options.precision, progress=lambda line: print(line, flush=True)
        )
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{MODEL_NAME} ({options.precision}): {model.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
