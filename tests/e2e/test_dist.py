"""What `make dist` builds does what the pages show, away from the repository."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import mneme
import pytest
from minilm_export.exporting import ensure_exported

ROOT = Path(__file__).parents[2]
LIMIT_MB = 450  # As `du -sm` counts them.
OWN = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
"""What every virtual environment has."""

pytestmark = pytest.mark.slow


def clean_environment(**more: str) -> dict[str, str]:
    """This machine's environment, without what leads to this repository or its settings."""
    unwanted = re.compile(r"MNEME_|PYTHON|VIRTUAL_ENV|MAKE|MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not unwanted.match(name)}
    path = [part for part in kept["PATH"].split(os.pathsep) if not Path(part).is_relative_to(ROOT)]
    return kept | {"PATH": os.pathsep.join(path)} | more


def run(*command: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=clean_environment(**more), capture_output=True, text=True, check=False
    )


def succeed(*command: str | Path, cwd: Path, **more: str) -> str:
    done = run(*command, cwd=cwd, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the repository with `dist`, as copied to another machine."""
    folder = tmp_path_factory.mktemp("elsewhere")
    pip = (sys.executable, "-m", "pip")
    found = run(*pip, "download", "-q", "--no-deps", "-d", "found", "hatchling", cwd=folder)
    if found.returncode:
        pytest.skip(f"no package index can be reached: {found.stderr.strip().splitlines()[-1]}")
    shutil.rmtree(folder / "found")
    ensure_exported(ROOT / "model" / "mneme_minilm")
    build = ("wheel", "-q", "--no-deps", "-w", folder / "dist", ROOT, ROOT / "model")
    succeed(*pip, *build, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def client(elsewhere: Path) -> Path:
    """The programs of an installation without extras."""
    venv.create(elsewhere / "client", with_pip=True)
    (wheel,) = (elsewhere / "dist").glob("mneme_grpc-*.whl")
    succeed(elsewhere / "client/bin/pip", "install", "-q", "--no-compile", wheel, cwd=elsewhere)
    return elsewhere / "client" / "bin"


@pytest.fixture(scope="module")
def installed(elsewhere: Path) -> Path:
    """The programs of a server, installed by the line of the guide."""
    guide = (ROOT / "docs/guides/operating.md").read_text()
    (line,) = re.findall(r"^mneme/bin/pip install .*\[server\].*$", guide, re.MULTILINE)
    venv.create(elsewhere / "mneme", with_pip=True)
    succeed(*shlex.split(line), "-q", cwd=elsewhere)
    return elsewhere / "mneme" / "bin"


@pytest.fixture
def address(installed: Path, tmp_path: Path) -> Iterator[str]:
    """A server of the installation, in an empty folder; it ends as it should."""
    settings = {
        "MNEME_LISTEN": "127.0.0.1:0",
        "MNEME_HTTP_LISTEN": "",
        "MNEME_METRICS_LISTEN": "",
        "MNEME_AUTH": "disabled",
    }
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [installed / "mneme-server", "serve"],
            cwd=tmp_path,
            env=clean_environment(**settings),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        serving = next((line for line in lines if line.startswith("serving on ")), "")
        assert serving, (tmp_path / "log").read_text()
        yield serving.removeprefix("serving on ").strip()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_the_client_tells_its_version(client: Path, tmp_path: Path) -> None:
    assert succeed(client / "mneme", "--version", cwd=tmp_path) == f"mneme {mneme.__version__}\n"


@pytest.mark.parametrize(
    ("command", "extra"),
    [("mneme-server serve", "server"), ("mneme-server --help", "server"), ("mneme-mcp", "mcp")],
)
def test_a_command_of_the_base_installation_names_its_extra(
    client: Path, tmp_path: Path, command: str, extra: str
) -> None:
    program, *arguments = command.split()
    done = run(client / program, *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"lacks its extra `{extra}`" in done.stderr
    assert ("mneme_minilm" in done.stderr) == (extra == "server")


def test_the_client_of_the_base_installation_says_that_no_server_answers(
    client: Path, tmp_path: Path
) -> None:
    done = run(client / "mneme", "--address", "127.0.0.1:1", "status", cwd=tmp_path)
    assert done.returncode not in (0, 1)
    assert done.stderr.startswith("mneme: ")
    assert "Traceback" not in done.stderr


def test_the_server_without_the_wheel_of_the_model_is_refused_by_its_name(
    client: Path, elsewhere: Path
) -> None:
    (wheel,) = (elsewhere / "dist").glob("mneme_grpc-*.whl")
    done = run(client / "pip", "install", "--dry-run", f"{wheel}[server]", cwd=elsewhere)
    assert done.returncode != 0
    assert "No matching distribution found for mneme-minilm" in done.stderr


def test_the_installed_server_records_and_recalls_as_the_readme_shows(
    installed: Path, address: str, tmp_path: Path
) -> None:
    readme = (ROOT / "README.md").read_text()
    program = re.findall(r"### From Python\n\n```python\n(.*?)```", readme, re.DOTALL)[0]
    said = succeed(installed / "python", "-c", program, cwd=tmp_path, MNEME_ADDRESS=address)
    assert "registry certificate expired" in said
    question = ("recall", "a credential ran out", "--scope", "event", "--limit", "1")
    said = succeed(installed / "mneme", *question, cwd=tmp_path, MNEME_ADDRESS=address)
    assert "registry certificate expired" in said
    assert f"Server    {mneme.__version__}" in succeed(
        installed / "mneme", "status", cwd=tmp_path, MNEME_ADDRESS=address
    )


def test_the_installation_has_nothing_of_the_repository_and_no_torch(
    installed: Path, tmp_path: Path
) -> None:
    program = (
        "import importlib.util as u, sys; import mneme, mneme_server, mneme_minilm\n"
        "print(*sys.path, *(m.__file__ for m in (mneme, mneme_server, mneme_minilm)), sep='\\n')\n"
        "print([n for n in ('torch', 'sentence_transformers', 'onnx', 'scipy') if u.find_spec(n)])"
    )
    *places, unwanted = succeed(installed / "python", "-c", program, cwd=tmp_path).splitlines()
    assert not [place for place in places if place and Path(place).is_relative_to(ROOT)]
    assert all(Path(file).is_relative_to(installed.parent) for file in places[-3:])
    assert unwanted == "[]"


def test_the_installed_server_takes_less_than_its_limit(installed: Path) -> None:
    folder = installed.parent
    packages = next(folder.glob("lib/*/site-packages"))
    own = sum(_bytes_on_disk(packages / name) for name in OWN)
    assert (_bytes_on_disk(folder) - own) / 2**20 < LIMIT_MB


def _bytes_on_disk(folder: Path) -> int:
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*"))
