"""The image is small, runs without rights, and needs nothing but its volume to be writable. It is not built here."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..releasing import ROOT
from ..surfaces.mcp.raw import Raw

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
STEPS = [line.split(None, 1) for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
FINAL = STEPS[max(number for number, step in enumerate(STEPS) if step[0] == "FROM") :]
BWRAP = shutil.which("bwrap")


def values(steps: list[list[str]], instruction: str) -> list[str]:
    return [rest for name, rest in steps if name == instruction]


def variables() -> dict[str, str]:
    return dict(pair.split("=", 1) for rest in values(FINAL, "ENV") for pair in rest.split())


def test_it_is_built_in_one_stage_and_run_in_another() -> None:
    assert len(values(STEPS, "FROM")) == 2
    assert all(re.match(r"python:\$\{PYTHON\}-slim\b", rest) for rest in values(STEPS, "FROM"))
    assert all(rest.startswith("--from=build ") for rest in values(FINAL, "COPY"))
    assert not [rest for rest in values(FINAL, "RUN") if re.search(r"\b(pip|uv|apt-get|apk)\b", rest)]


def test_it_runs_the_server_as_a_user_without_rights() -> None:
    assert values(FINAL, "ENTRYPOINT") + values(FINAL, "CMD") == ['["reasonry"]', '["mcp"]']
    (user,) = values(FINAL, "USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user), "a number, so that a cluster can see that it is not root"
    assert any(f"chown {user} /data" in rest for rest in values(FINAL, "RUN"))
    assert values(FINAL, "VOLUME") == ["/data"]
    assert variables()["REASONRY_STORE"].startswith("/data/")


def test_what_it_copies_is_there_and_nothing_else_is_sent() -> None:
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")
    }
    copied = {name for rest in values(STEPS, "COPY") if "--from" not in rest for name in rest.split()[:-1]}
    assert {name.removeprefix("./") for name in copied} == allowed
    assert all((ROOT / name).exists() for name in allowed)


def test_it_installs_what_the_lock_says_without_the_tools_of_development() -> None:
    (install,) = [rest for rest in values(STEPS, "RUN") if rest.startswith("uv sync")]
    assert {"--frozen", "--no-dev", "--no-editable"} <= set(install.split())
    required = re.search(r'"uv(>=[\d.]+,<[\d.]+)"', DOCKERFILE)
    backend = re.search(r'"uv_build(.+?)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert required is not None
    assert backend is not None
    assert required[1] == backend[1], (
        "uv builds the package by itself where it is of the version the backend has"
    )


@pytest.mark.parametrize(
    ("extras", "arguments"), [("", ""), ("providers", "--extra providers"), ("a,b", "--extra a --extra b")]
)
def test_extras_become_arguments(extras: str, arguments: str) -> None:
    if (shell := shutil.which("sh")) is None:
        pytest.skip("needs a shell")
    (install,) = [rest for rest in values(STEPS, "RUN") if rest.startswith("uv sync")]
    words = re.search(r"\$\(.*\)", install)
    assert words is not None
    command = [shell, "-c", f"EXTRAS={extras}; echo {words[0]}"]
    assert (
        subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip() == arguments
    )


def sandboxed(data: Path, *command: str) -> list[str]:
    """Return a command that runs as in the image: another user, no network, a root that cannot be written to."""
    environ = {
        **variables(),
        "PATH": "/usr/bin",
        "HOME": str(data),
        "REASONRY_STORE": str(data / "reasonry.db"),
    }
    settings = [word for name, value in environ.items() for word in ("--setenv", name, value)]
    mounts = ["--ro-bind", "/", "/", "--bind", str(data), str(data), "--proc", "/proc", "--dev", "/dev"]
    user = ["--unshare-all", "--uid", "65532", "--gid", "65532", "--die-with-parent", "--chdir", str(data)]
    return [str(BWRAP), *mounts, *user, "--clearenv", *settings, *command]


def can_be_sandboxed(tmp_path: Path) -> bool:
    if BWRAP is None:
        return False
    return subprocess.run(sandboxed(tmp_path, "true"), capture_output=True, check=False).returncode == 0


def test_the_server_needs_nothing_but_its_volume_to_be_writable(tmp_path: Path) -> None:
    if not can_be_sandboxed(tmp_path):
        pytest.skip("needs bubblewrap, and leave to use it")
    beside = sandboxed(tmp_path, "touch", str(tmp_path.parent / "elsewhere"))
    assert subprocess.run(beside, capture_output=True, check=False).returncode != 0
    command = sandboxed(tmp_path, sys.executable, "-m", "reasonry", "mcp")
    with Raw(command=command) as client:
        session = client.think(1)["sessionId"]
    with Raw(command=command) as client:
        assert client.call("sessions", action="resume")["session_id"] == session
    assert (tmp_path / "reasonry.db").exists()
