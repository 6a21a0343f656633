"""Commands as verifiers: the exit code decides, the last lines are the reason, and the sandbox holds."""

import os
import shutil
from pathlib import Path

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.effects import Verify
from reasonry.core.events import Verified
from reasonry.errors import SandboxError, UsageError
from reasonry.models.scripted import ScriptedModel
from reasonry.tools.verifiers import open_verifier

from ..engine.running import trace_of

pytestmark = pytest.mark.anyio

CHECK = """from answer import median
assert median([3, 1, 2]) == 2, "of an odd number"
assert median([1, 3]) == 2, "of an even number"
"""
WRONG = "def median(x):\n    return sorted(x)[len(x) // 2]"
RIGHT = "def median(x):\n    s = sorted(x)\n    return (s[len(s) // 2] + s[~len(s) // 2]) / 2"
KINDS = ["command-unsandboxed", *(["command"] if shutil.which("bwrap") else [])]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "check.py").write_text(CHECK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def verdict(spec: str, answer: str, *, final: bool = True) -> Verified:
    return await open_verifier(spec).verify(Verify("Write median.", (answer,), final))


@pytest.mark.parametrize("kind", KINDS)
async def test_the_exit_code_decides_and_the_last_lines_are_the_reason(kind: str, folder: Path) -> None:
    spec = f"{kind}:python3 -B check.py"
    wrong = await verdict(spec, f"Here it is:\n```python\n{WRONG}\n```")
    assert (wrong.verdict, wrong.failed) == ("wrong", False)
    assert wrong.detail.startswith("the command ended with 1:")
    assert wrong.detail.endswith("AssertionError: of an even number")
    assert (await verdict(spec, RIGHT)).verdict == "right"
    assert (await verdict(spec, RIGHT, final=False)).verdict == "unknown"
    assert sorted(path.name for path in folder.iterdir()) == ["check.py"]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_comes_on_standard_input_and_as_a_file(kind: str, folder: Path) -> None:
    said = await verdict(f"{kind}:sh -c 'cat; cat \"$REASONRY_ANSWER\"; exit 3'", "It is 5.")
    assert said.detail == "the command ended with 3:\nIt is 5.It is 5."


@pytest.mark.parametrize("kind", KINDS)
async def test_no_key_is_in_the_environment(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-user")
    said = await verdict(f"{kind}:sh -c 'env; exit 1'", "x")
    assert "PATH=" in said.detail
    assert "sk-secret" not in said.detail


@pytest.mark.skipif("command" not in KINDS, reason="bubblewrap is not installed")
@pytest.mark.parametrize(
    "action",
    ["touch here", "cat ~/.bashrc /etc/passwd", "ls /home/* /root/*", "python3 -c 'import socket; "
     "socket.create_connection((\"127.0.0.1\", 22), 1)'"],
)  # fmt: skip
async def test_in_the_sandbox_a_command_reaches_nothing_else(action: str, folder: Path) -> None:
    (folder / "act.sh").write_text(f"({action}) && echo reached\nexit 1")
    said = await verdict("command:sh act.sh", "x")
    assert said.verdict == "wrong"
    assert "reached" not in said.detail
    assert [path.name for path in folder.iterdir() if path.name == "here"] == []


@pytest.mark.skipif("command" not in KINDS, reason="bubblewrap is not installed")
@pytest.mark.parametrize("place", ["project/try.sh", "checks/try.sh", "try.sh"])
async def test_a_script_shows_no_folder_above_it_and_keeps_its_scratch_space(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "cat ../other/note && echo reached\ntouch /tmp/scratch && echo written\nexit 1"
    write(tmp_path, ["other/note", "project/check.py"])
    write(tmp_path, [place], f"#!/bin/sh\n{script}")
    (tmp_path / place).chmod(0o755)
    monkeypatch.chdir(tmp_path / "project")
    if place == "try.sh":
        monkeypatch.setenv("HOME", str(tmp_path))
    for program in (tmp_path / place, os.path.join(".", os.path.relpath(tmp_path / place))):
        said = await verdict(f"command:{program}", "x")
        # Output and complaints come through two pipes, in either order.
        assert "written" in said.detail.splitlines()
        assert "reached" not in said.detail


SECRET = "STRIPE=sk_live_INTHEFOLDER123456"
SECRETS = [
    ".env",
    ".env.local",
    ".git/config",
    "sub/.npmrc",
    ".pypirc",
    "sub/tls.pem",
    "id_ed25519",
    ".aws/credentials",
]
IF_IGNORED = ["sub/app.local", "client_secret.json", "sub/Credentials.txt", "kept/tls.key"]
READ_ALL = """import os
for folder, _, names in os.walk("."):
    for name in names:
        text = open(os.path.join(folder, name)).read()
        if "INTHE" in text:
            print("read", name)
raise SystemExit(1)
"""
in_sandbox = pytest.mark.skipif("command" not in KINDS, reason="bubblewrap is not installed")


def write(folder: Path, names: list[str], text: str = SECRET) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def read_by_the_answer(said: Verified) -> list[str]:
    assert said.verdict == "wrong"
    return sorted(line[5:] for line in said.detail.splitlines() if line.startswith("read "))


@in_sandbox
async def test_a_program_from_a_model_reads_no_secret_of_the_folder(folder: Path) -> None:
    write(folder, [*SECRETS, *IF_IGNORED, "secrets.py", ".envs/bin/python", "data/a.csv", "real.conf"])
    write(folder, [".gitignore"], "# of the team\n*.local\n/client_*\nkept/\nCredentials.txt\n!tls.key\n")
    write(folder, [".envs/pyvenv.cfg"], "home = /usr")
    (folder / "sub/.env.link").symlink_to("../real.conf")
    spec = "command:python3 -B -c 'import answer'"
    assert read_by_the_answer(await verdict(spec, READ_ALL)) == ["a.csv", "python", "secrets.py"]
    hiding = open_verifier(spec, {"REASONRY_VERIFIER_HIDES": "secrets.*, "}, ("data/*.csv",))
    assert read_by_the_answer(await hiding.verify(Verify("x", (READ_ALL,), True))) == ["python"]
    (folder / ".gitignore").unlink()
    kept = sorted([*(Path(name).name for name in IF_IGNORED), "a.csv", "python", "secrets.py"])
    assert read_by_the_answer(await verdict(spec, READ_ALL)) == kept


@in_sandbox
async def test_no_packages_in_the_folder_keep_a_secret_from_being_hidden(folder: Path) -> None:
    write(folder, [".env", "sub/tls.pem", "lib/python3.12/os.py", ".venv/a.csv", "node_modules/b/c.csv"])
    write(folder, ["pyvenv.cfg", ".venv/pyvenv.cfg"], "home = /usr")
    spec = "command:python3 -B -c 'import answer'"
    assert read_by_the_answer(await verdict(spec, READ_ALL)) == ["a.csv", "c.csv", "os.py"]
    hiding = open_verifier(spec, hides=["*.csv"])
    assert read_by_the_answer(await hiding.verify(Verify("x", (READ_ALL,), True))) == ["os.py"]


@in_sandbox
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may open by handle")
async def test_a_secret_is_not_opened_by_its_handle_either(folder: Path) -> None:
    program = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
handle = ctypes.create_string_buffer((128).to_bytes(4, "little") + bytes(132))
print(libc.name_to_handle_at(-100, b".", handle, ctypes.byref(ctypes.c_int()), 0), ctypes.get_errno())
print(libc.open_by_handle_at(os.open(".", 0), handle, 0), ctypes.get_errno())
raise SystemExit(1)
"""
    said = await verdict("command:python3 -B -c 'import answer'", program)
    assert said.detail == "the command ended with 1:\n-1 1\n-1 1"


@pytest.mark.parametrize("kind", KINDS)
async def test_what_looks_like_a_key_is_masked_in_the_output(kind: str, folder: Path) -> None:
    said = await verdict(f"{kind}:sh -c 'cat; exit 1'", f"a token: {SECRET}")
    assert said.detail == "the command ended with 1:\na token: STRIPE=***"
    long = await verdict(f"{kind}:sh -c 'cat; exit 1'", f"{SECRET} {'word ' * 298}")
    assert long.detail.startswith("the command ended with 1:\nSTRIPE=*** word")


@in_sandbox
async def test_a_program_starts_64_processes_with_2_gib_each_and_no_more(folder: Path) -> None:
    program = """import os, signal
held = []
try:
    for _ in range(300):
        child = os.fork()
        if child == 0:
            signal.pause()
        held.append(child)
except OSError as error:
    print(50 < len(held) < 64, error.strerror)
for child in held:
    os.kill(child, signal.SIGKILL)
try:
    bytearray(2 * 2**30)
except MemoryError:
    print("no memory")
raise SystemExit(1)
"""
    said = await verdict("command:python3 -B -c 'import answer'", program)
    assert said.detail == "the command ended with 1:\nTrue Resource temporarily unavailable\nno memory"


def test_only_a_sandbox_hides_files(folder: Path) -> None:
    with pytest.raises(UsageError, match="only the sandbox of command:PROGRAM hides files"):
        open_verifier("command-unsandboxed:true", hides=["*.csv"])


async def test_a_command_that_does_not_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasonry.tools.command_verifier.MAX_SECONDS", 0.2)
    said = await verdict(f"{KINDS[-1]}:sleep 60", "x")
    assert (said.verdict, said.detail) == ("wrong", "the command did not end within 0.2 s")


async def test_without_a_sandbox_it_is_refused_unless_its_user_wrote_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no program 'no-such-program'"):
        open_verifier("command:no-such-program -q")
    monkeypatch.setattr("reasonry.tools.sandbox_bubblewrap.sys.platform", "darwin")
    with pytest.raises(SandboxError, match="command-unsandboxed:true") as caught:
        open_verifier("command:true")
    assert caught.value.code == "sandbox_unavailable"
    assert (await verdict("command-unsandboxed:true", "x")).verdict == "right"


async def test_refine_continues_until_the_tests_pass(folder: Path) -> None:
    replies = (f"<answer>```python\n{text}\n```</answer>" for text in (WRONG, RIGHT))
    model = ScriptedModel.of(*({"stage": "sequential_reasoning", "reply": reply} for reply in replies))
    async with App("memory") as app:
        named = Participants(model=model, verifier=f"{KINDS[-1]}:python3 -B check.py")
        request = RunRequest(
            problem="Write a Python function median(x).", strategy="refine", participants=named
        )
        result = await app.solve(*app.order(request))
        assert (result.outcome, result.usage.calls) == ("solved", 2)
        asked = (await trace_of(app.engine, result.run_id))["questions"][1]["prompt"]
        assert "AssertionError: of an even number" in asked


@in_sandbox
async def test_a_resumed_run_hides_what_it_hid(folder: Path) -> None:
    named = Participants(model="offline", verifier="command:true", verifier_hides=("*.csv",))
    async with App("memory") as app:
        performers = app.pool.open(named, "x")
        reopened = app.pool.reopen(Participants(), performers.names)
        assert reopened.verifier_hides == ("*.csv",)
        assert "*.csv" in getattr(reopened.verifier, "hides", ())
        assert app.pool.open(reopened, "x").names.verifier_hides == ("*.csv",)
