"""What `make dist` builds does what the pages show, away from the repository."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mneme
import pytest
from minilm_export.exporting import ensure_exported

ROOT = Path(__file__).parents[2]
LIMIT_MB = 450  # As `du -sm` counts them.
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
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
    with serving(installed / "mneme-server", "serve", cwd=tmp_path, **settings) as (address, _):
        yield address


@contextmanager
def serving(
    *command: str | Path, cwd: Path, stop: signal.Signals = signal.SIGTERM, **more: str
) -> Iterator[tuple[str, str]]:
    """Run a server until `stop` ends it as it should; where it serves gRPC, and HTTP if it does."""
    with (cwd / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=clean_environment(**more),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        http = ""
        for line in process.stdout:
            http = line.removeprefix("serving HTTP on ").strip() if " HTTP " in line else http
            if line.startswith("serving on "):
                yield line.removeprefix("serving on ").strip(), http
                break
        else:
            pytest.fail((cwd / "log").read_text())
        process.send_signal(stop)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_the_client_tells_its_version(client: Path, tmp_path: Path) -> None:
    assert succeed(client / "mneme", "--version", cwd=tmp_path) == f"mneme {mneme.__version__}\n"


@pytest.mark.parametrize(
    ("command", "extra"),
    [("mneme-server serve", "server"), ("mneme-mcp", "mcp")],
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


def test_the_installed_server_records_and_recalls_as_the_quick_start_shows(
    installed: Path, address: str, tmp_path: Path
) -> None:
    guide = (ROOT / "docs/guides/quick-start.md").read_text()
    program = re.findall(r"## From Python\n\n```python\n(.*?)```", guide, re.DOTALL)[0]
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


def test_what_the_image_installs_can_be_installed(installed: Path, elsewhere: Path) -> None:
    """All of it but what the guide's line has installed already, so that little is fetched."""
    (line,) = re.findall(r"pip install (.*?) &&", instructions()["RUN"])
    line = line.replace("/wheels/", f"{elsewhere}/dist/")
    plan = f"{installed / 'pip'} install --dry-run {line}"
    assert "psycopg" in succeed("bash", "-c", plan, cwd=elsewhere)


def test_the_server_runs_as_the_image_starts_it_until_its_signal(
    installed: Path, tmp_path: Path
) -> None:
    image = instructions()
    settings = dict(word.split("=", 1) for word in shlex.split(image["ENV"]))
    data, path = settings.pop("MNEME_DATA_DIR"), settings.pop("PATH")
    assert (data, path) == (image["VOLUME"], "/mneme/bin:$PATH")
    # Other places than in a container, and ports that are free.
    settings = {name: re.sub(r"0\.0\.0\.0:\d+", "127.0.0.1:0", v) for name, v in settings.items()}
    settings |= {
        "MNEME_DATA_DIR": str(tmp_path / "data"),
        "MNEME_ADMIN_KEY": "mn_of_the_container",
        "PATH": f"{installed}:{os.environ['PATH']}",
    }
    command = [installed / json.loads(image["ENTRYPOINT"])[0], *json.loads(image["CMD"])]
    check = [str(installed / "python"), *json.loads(image["HEALTHCHECK"].split("CMD ")[1])[1:]]
    stop = signal.Signals[image["STOPSIGNAL"]]
    with serving(*command, cwd=tmp_path, stop=stop, **settings) as (address, http):
        check[-1] = check[-1].replace("http://127.0.0.1:8080", http)
        assert http in check[-1]
        assert run(*check, cwd=tmp_path).returncode == 0
        told = {"MNEME_ADDRESS": address, "MNEME_API_KEY": settings["MNEME_ADMIN_KEY"]}
        assert f"Server    {mneme.__version__}" in succeed(
            installed / "mneme", "status", cwd=tmp_path, **told
        )
    assert run(*check, cwd=tmp_path).returncode != 0
    assert (tmp_path / "data").is_dir()
    assert all(line.startswith("{") for line in (tmp_path / "log").read_text().splitlines())


def instructions() -> dict[str, str]:
    """What the Dockerfile says, by instruction, each on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\s*\\\n\s*", " ", text).splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line)


def test_make_dist_needs_nothing_of_what_development_installs() -> None:
    """Neither its environment, nor torch or a browser in its own."""
    plan = subprocess.run(
        ["make", "--dry-run", "--always-make", "dist"],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert plan.returncode == 0, plan.stderr
    assert "-e '.[export]'" in plan.stdout
    assert "-m minilm_export" in plan.stdout
    assert not re.search(r"\.venv/|\[dev\]|playwright|chromium", plan.stdout)


def _bytes_on_disk(folder: Path) -> int:
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*"))
