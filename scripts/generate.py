"""Generate the code of the API from proto/, for Python and TypeScript.

`buf build` compiles the schemas into one image; grpc_tools' protoc runs the
plugins on it (buf's built-in protoc does not cover grpc_python), and clientgen
writes the methods of the clients from the same image. Works offline. The
TypeScript code needs `npm ci` in clients/typescript, and is left as it is
without.

Usage: python scripts/generate.py [PYTHON_DIR [TYPESCRIPT_DIR]]
       (default: clients/python clients/typescript/src/gen)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.resources import files
from pathlib import Path

import google.rpc  # type: ignore[import-untyped]
from clientgen.bare import bare
from clientgen.reading import describe
from clientgen.render import write
from clientgen.telling import tell
from clientgen.typescript import write as write_typescript
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sysconfig.get_path("scripts"))
PYTHON = ROOT / "clients/python"
TYPESCRIPT = ROOT / "clients/typescript/src/gen"
_PACKAGES = ("mneme/v1", "mneme/_generated", "buf")
OUTPUTS = (*(PYTHON / package for package in _PACKAGES), TYPESCRIPT)
"""What this script writes, and nothing else."""
_GOOGLE = ("google/rpc/error_details.proto", "google/rpc/status.proto")
_OPTIONS = frozenset({"mneme/v1/options.proto", "buf/validate/validate.proto"})
"""What only options are made of, which the TypeScript code leaves out."""
PROTOC_GEN_ES = ROOT / "clients/typescript/node_modules/.bin/protoc-gen-es"


def schemas() -> list[str]:
    """The schemas that code is made of, relative to their roots."""
    own = sorted(p.relative_to(ROOT / "proto") for p in (ROOT / "proto").rglob("*.proto"))
    return [*map(str, own), "buf/validate/validate.proto"]


def build(image: Path) -> None:
    """Compile the schemas into one image, comments included."""
    subprocess.run([BIN / "buf", "build", "-o", image], cwd=ROOT, check=True)


def generate_python(image: Path, out: Path) -> None:
    """Write the generated packages mneme.v1, mneme._generated and buf.validate below `out`."""
    for package in _PACKAGES:
        shutil.rmtree(out / package, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    run_protoc(
        f"--descriptor_set_in={image}",
        f"--plugin=protoc-gen-mypy_grpc={BIN / 'protoc-gen-mypy_grpc'}",
        f"--python_out={out}",
        f"--pyi_out={out}",
        f"--grpc_python_out={out}",
        f"--mypy_grpc_out={out}",
        *schemas(),
    )
    write(describe(image.read_bytes()), out / "mneme/_generated")
    settings = f"--config={ROOT / 'pyproject.toml'}"
    subprocess.run([BIN / "ruff", "format", "-q", settings, out / "mneme/_generated"], check=True)
    # Schemas without services leave empty stubs; the API does not show them.
    for stub in out.rglob("*_pb2_grpc.py*"):
        if "Stub" not in stub.read_text():
            stub.unlink()
    for package, docstring in {
        "mneme/v1": "The wire's messages and stubs, generated from proto/mneme/v1.",
    }.items():
        (out / package / "__init__.py").write_text(f'"""{docstring}"""\n')


def generate_typescript(image: Path, out: Path) -> None:
    """Write protobuf-es' modules, and the client's types and methods, into `out`."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    plugin = (
        f"--plugin=protoc-gen-es={PROTOC_GEN_ES}",
        f"--es_out={out}",
        "--es_opt=target=ts,import_extension=js,json_types=true",
    )
    lean = image.with_name("bare.binpb")
    lean.write_bytes(bare(image.read_bytes()))
    read = [name for name in schemas() if name not in _OPTIONS]
    run_protoc(f"--descriptor_set_in={lean}", *plugin, *read)
    # The details of errors, from the package that the server takes them from.
    (googleapis,) = (Path(folder).parents[1] for folder in google.rpc.__path__)
    run_protoc(f"-I{googleapis}", *plugin, *_GOOGLE)
    write_typescript(describe(image.read_bytes()), out)


def run_protoc(*arguments: str) -> None:
    """Run protoc; its own message tells what it did not like."""
    if protoc.main(["protoc", f"-I{files('grpc_tools') / '_proto'}", *arguments]) != 0:
        raise SystemExit("protoc failed; its message is above")


def main(python: Path = PYTHON, typescript: Path = TYPESCRIPT) -> None:
    """Generate both; the TypeScript code only where its plugin is installed."""
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch) / "image.binpb"
        build(image)
        image.write_bytes(tell(image.read_bytes()))
        generate_python(image, python)
        if PROTOC_GEN_ES.exists():
            generate_typescript(image, typescript)
        else:
            print("TypeScript: left as it is; for new code run npm ci in clients/typescript")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
