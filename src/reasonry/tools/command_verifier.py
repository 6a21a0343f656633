"""A command as a verifier: tests, a linter, a compiler; its exit code is the verdict, its last lines are the reason.

The command runs in the current folder. It finds the answer on its standard input and in the file named by
`REASONRY_ANSWER`, and a Python program in the answer as the module `answer`. In the sandbox it reads that folder, the
answer and the programs of the system, writes to `/tmp` alone, and has no network; outside it runs only where its user
wrote so.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from ..blocks.programs import program_in
from ..child import Output, bare_environment, run_child, split_command
from ..core.effects import Verify
from ..core.events import Verified
from ..errors import SandboxError, UsageError
from .sandbox_bubblewrap import NOBODY, WALLS, find_bwrap

SANDBOXED: Final = "command"
UNSANDBOXED: Final = "command-unsandboxed"

MAX_SECONDS: Final = 120.0
MAX_OUTPUT_BYTES: Final = 1024 * 1024
LAST_LINES: Final = 20
LAST_CHARS: Final = 1_500
"""Of the output, as much as an answer's writer is shown."""

_READY: Final = "ready"
_LIMITS: Final = f'echo {_READY}; ulimit -f 65536; ulimit -v 16777216; ulimit -t 180; exec "$@"'
"""Blocks of a file, KiB of memory and seconds of a processor, for each process."""
_SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"),
)
_NOT_RUN: Final = (126, 127)
"""Exit codes that say: the program could not be started."""


class CommandVerifier:
    """Runs a command on each final answer.

    Args:
        text: The command, as a shell would read it; no shell runs it.

    Raises:
        UsageError: There is no such program, or the folder holds too much to be shown to it.
        SandboxError: There is no sandbox to run it in.
    """

    def __init__(self, text: str, *, sandboxed: bool = True) -> None:
        self.name = f"{SANDBOXED if sandboxed else UNSANDBOXED}:{text}"
        self.words, self.folder = split_command(text, "verifier"), os.getcwd()
        self.bwrap = find_bwrap() if sandboxed else None
        if sandboxed and self.bwrap is None:
            raise SandboxError(
                "a command that checks answers runs in a sandbox, which needs Linux and the program bwrap "
                f"(apt install bubblewrap); to run it without one, write {UNSANDBOXED}:{text}"[:500]
            )
        if sandboxed and self.folder in ("/", os.path.expanduser("~")):
            raise UsageError("run it in the folder of the tests: the sandbox shows the command all of it",
                             option="verifier")  # fmt: skip

    async def verify(self, claim: Verify) -> Verified:
        """Look at a final answer; a step on the way is `unknown`.

        Raises:
            SandboxError: The command was not run.
        """
        if not claim.final or not claim.path:
            return Verified("unknown", "only final answers are given to the command")
        answer, output = claim.path[-1], Output(MAX_OUTPUT_BYTES)
        with tempfile.TemporaryDirectory(prefix="reasonry-", ignore_cleanup_errors=True) as place:
            Path(place, "answer.txt").write_text(answer, "utf-8", "replace")
            if (program := program_in(answer)) is not None:
                Path(place, "answer.py").write_text(program, "utf-8", "replace")
            environment = {**bare_environment(os.environ), "PYTHONPATH": place}
            environment |= {"REASONRY_ANSWER": f"{place}/answer.txt", "PYTHONDONTWRITEBYTECODE": "1"}
            command = [*self._walls(place, environment), *self.words]
            try:
                ended = await run_child(
                    command, answer.encode(errors="replace"), MAX_SECONDS, output, output,
                    env={} if self.bwrap else environment, cwd=self.folder,
                )  # fmt: skip
            except OSError as error:
                return Verified("unknown", f"{command[0]} cannot be started: {error.strerror}", failed=True)
        text = output.text()
        if self.bwrap is not None:
            ready, _, text = text.partition("\n")
            if ready != _READY:
                raise SandboxError(
                    f"the sandbox of the command cannot be used: {output.text()[-300:].strip()}"
                )
        return _verdict(ended.code, text, overran=ended.overran)

    def _walls(self, place: str, environment: dict[str, str]) -> list[str]:
        """Return the command line up to the command: the world that bubblewrap builds around it; none outside."""
        if self.bwrap is None:
            return []
        shown = [*_SYSTEM, *_environments(self.words[0]), self.folder]
        binds = [part for each in dict.fromkeys(shown) for part in ("--ro-bind-try", each, each)]
        inside = {**environment, "HOME": "/tmp", "TMPDIR": "/tmp"}
        variables = [part for name, value in inside.items() for part in ("--setenv", name, value)]
        return [
            self.bwrap,
            *(*WALLS, *NOBODY, *variables, "--proc", "/proc", "--dev", "/dev"),
            *("--size", str(256 * 2**20), "--tmpfs", "/tmp", *binds, "--ro-bind", place, place),
            *("--chdir", self.folder, "--", "/bin/sh", "-c", _LIMITS, "sh"),
        ]


def _environments(program: str) -> list[str]:
    """Return the folders of a program, and of the interpreter beside it; of a home, only those that hold programs."""
    files = [Path(program), Path(os.path.realpath(program))]
    files.append(Path(os.path.realpath(Path(program).parent / "python3")))
    home = Path.home()
    shown: list[Path] = []
    for prefix in dict.fromkeys(file.parent.parent for file in files if file.exists()):
        if prefix in (home, home / ".local"):
            shown += [prefix / "bin", prefix / "lib"]
        elif prefix not in home.parents:
            shown.append(prefix)
    return [str(folder) for folder in shown if folder.exists()]


def _verdict(code: int, output: str, *, overran: bool) -> Verified:
    last = "\n".join(output.strip().splitlines()[-LAST_LINES:])[-LAST_CHARS:]
    if overran:
        return Verified("wrong", f"the command did not end within {MAX_SECONDS:g} s\n{last}".strip())
    if code in _NOT_RUN:
        return Verified("unknown", f"the command could not be run: {last}"[:500], failed=True)
    if code == 0:
        return Verified("right", "the command ended with 0")
    return Verified("wrong", f"the command ended with {code}:\n{last}".strip())
