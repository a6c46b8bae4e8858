"""Generate the Python code of the API from proto/.

`buf build` compiles the schemas into one image; grpc_tools' protoc runs the
plugins on it (buf's built-in protoc does not cover grpc_python), and clientgen
writes the methods of the two clients from the same image. Works offline.

Usage: python scripts/generate.py [OUT_DIR]     (default: clients/python)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.resources import files
from pathlib import Path

from clientgen.description import describe
from clientgen.render import write
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sysconfig.get_path("scripts"))


def generate(out: Path) -> None:
    """Write the generated packages mneme.v1, mneme._generated and buf.validate below `out`."""
    schemas = [
        *sorted(p.relative_to(ROOT / "proto") for p in (ROOT / "proto").rglob("*.proto")),
        Path("buf/validate/validate.proto"),
    ]
    for package in ("mneme/v1", "mneme/_generated", "buf"):
        shutil.rmtree(out / package, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch) / "image.binpb"
        subprocess.run([BIN / "buf", "build", "-o", image], cwd=ROOT, check=True)
        arguments = [
            "protoc",
            f"--descriptor_set_in={image}",
            f"-I{files('grpc_tools') / '_proto'}",
            f"--plugin=protoc-gen-mypy_grpc={BIN / 'protoc-gen-mypy_grpc'}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            f"--grpc_python_out={out}",
            f"--mypy_grpc_out={out}",
            *map(str, schemas),
        ]
        if protoc.main(arguments) != 0:
            raise SystemExit("protoc failed; its message is above")
        write(describe(image.read_bytes()), out / "mneme/_generated")
    # Schemas without services leave empty stubs; the API does not show them.
    for stub in out.rglob("*_pb2_grpc.py*"):
        if "Stub" not in stub.read_text():
            stub.unlink()
    for package, docstring in {
        "mneme/v1": "The wire's messages and stubs, generated from proto/mneme/v1.",
    }.items():
        (out / package / "__init__.py").write_text(f'"""{docstring}"""\n')


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "clients/python")
