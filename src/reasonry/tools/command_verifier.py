"""Runs a command such as a linter as a verifier. The exit code decides the verdict, and the output is the reason.

The command runs in the current folder. It gets the answer on standard input and in the file `$REASONRY_ANSWER`. If the
answer contains a Python program, the command can import the program as the module `answer`. In the sandbox, the command
can read the answer, the system's programs, and the current folder except its secrets. It can write only to `/tmp` and
`/dev/shm`, and has no network. The command runs without a sandbox only if the user chooses this.
"""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from secrets import randbelow
from typing import Final

from ..blocks.programs import program_in
from ..core.effects import Verify
from ..core.events import Verified
from ..errors import SandboxError, UsageError
from ..system.masking import mask_keylike
from ..system.processes import Output, bare_environment, run_child, split_command
from .sandbox_bubblewrap import FIRST_UID, NOBODY, UIDS, WALLS, find_bwrap
from .seccomp import filter_program

SANDBOXED: Final = "command"
UNSANDBOXED: Final = "command-unsandboxed"

MAX_SECONDS: Final = 120.0
MAX_OUTPUT_BYTES: Final = 1024 * 1024
LAST_LINES: Final = 20
LAST_CHARS: Final = 1_500
"""The author of the answer sees at most this many lines and characters at the end of the output."""

_READY: Final = "ready"
_LIMITS: Final = (
    "ulimit -u 64 2>/dev/null || ulimit -p 64; (:) || exit; "
    f'echo {_READY}; ulimit -f 65536; ulimit -v 2097152; ulimit -t 180; exec "$@"'
)
"""A script that limits processes in total and, for each process, file blocks, KiB of memory and processor seconds.

A kernel before 5.14 also counts processes outside the sandbox. So `(:)` first tests whether another process can start.
"""
_SCRATCH: Final = ("--perms", "1777", "--size", str(256 * 2**20), "--tmpfs")
_SETPRIV: Final = "/usr/bin/setpriv"
_FOR_ROOT: Final = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH")
_READS_ALL: Final = "-all,+dac_read_search"
_BY_HANDLE: Final = ("name_to_handle_at", "open_by_handle_at")
"""System calls with which a process that may read all files could open files outside the sandbox."""
_SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"),
)
_PROGRAMS: Final = ("bin", ".bin", "sbin", "shims")
"""Names of folders that contain programs. Such programs also need the parent folder."""
_NOT_RUN: Final = (126, 127)
"""Exit codes of a program that could not be started."""

SECRETS: Final = (
    *(".env*", ".git", ".git-credentials", ".npmrc", ".pypirc", ".netrc", ".htpasswd", "*.pem"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *(".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".config/gcloud", ".kube", ".docker", ".oci"),
)
"""Files and folders that appear empty inside the sandbox. A pattern with a slash matches the end of the path."""
SECRETS_IF_IGNORED: Final = ("*.local", "*secret*", "*credential*", "*.key")
"""Files that appear empty inside the sandbox if a `.gitignore` names them."""
_INSTALLED: Final = ("node_modules", "site-packages")
"""Folders of installed packages, which contain no secrets of a user."""


class CommandVerifier:
    """Runs a command on each final answer.

    Args:
        text: The command, with the quoting rules of a shell. No shell runs the command.
        hides: Patterns of additional files that appear empty inside the sandbox.

    Raises:
        UsageError: The program does not exist, or the current folder is `/` or the home folder.
        SandboxError: No sandbox is available.
    """

    def __init__(self, text: str, *, sandboxed: bool = True, hides: Sequence[str] = ()) -> None:
        self.name = f"{SANDBOXED if sandboxed else UNSANDBOXED}:{text}"
        self.words, self.folder = split_command(text, "verifier"), os.getcwd()
        self.bwrap = find_bwrap() if sandboxed else None
        self.hides = tuple(pattern.strip("/").lower() for pattern in hides)
        if sandboxed and self.bwrap is None:
            raise SandboxError(
                "a command that checks answers runs in a sandbox, which needs Linux and the program bwrap "
                f"(apt install bubblewrap); to run it without one, write {UNSANDBOXED}:{text}"[:500]
            )
        # Only root's sandbox reads and closes the file descriptor of the rules. Any other command would inherit it.
        is_root = sandboxed and _is_root()
        self._rules = (filter_program(only=_BY_HANDLE) or b"") if is_root else b""
        if is_root and not (self._rules and shutil.which(_SETPRIV)):
            raise SandboxError("started by root, the sandbox of a command needs x86-64 or ARM and the program setpriv "
                               "(apt install util-linux); run it as another user")  # fmt: skip
        if sandboxed and self.folder in ("/", os.path.expanduser("~")):
            raise UsageError("run it in the folder of the tests: the sandbox shows the command all of it",
                             option="verifier")  # fmt: skip

    async def verify(self, claim: Verify) -> Verified:
        """Check a final answer. If the sandbox fails, raise SandboxError. On an intermediate step, return `unknown`."""
        if not claim.final or not claim.path:
            return Verified("unknown", "only final answers are given to the command")
        answer, output = claim.path[-1], Output(MAX_OUTPUT_BYTES)
        with tempfile.TemporaryDirectory(prefix="reasonry-", ignore_cleanup_errors=True) as place:
            Path(place, "answer.txt").write_text(answer, "utf-8", "replace")
            if (program := program_in(answer)) is not None:
                Path(place, "answer.py").write_text(program, "utf-8", "replace")
            Path(place, "hidden").touch()
            environment = {**bare_environment(os.environ), "PYTHONPATH": place}
            environment |= {"REASONRY_ANSWER": f"{place}/answer.txt", "PYTHONDONTWRITEBYTECODE": "1"}
            with open(Path(place, "rules"), "w+b") as rules:
                rules.write(self._rules)
                rules.seek(0)
                walls = await asyncio.to_thread(self._walls, place, environment, rules.fileno())
                command = [*walls, *self.words]
                try:
                    ended = await run_child(
                        command, answer.encode(errors="replace"), MAX_SECONDS, output, output, cwd=self.folder,
                        env={} if self.bwrap else environment, pass_fds=(rules.fileno(),) if self._rules else (),
                    )  # fmt: skip
                except OSError as error:
                    why = f"{command[0]} cannot be started: {error.strerror}"
                    return Verified("unknown", why, failed=True)
        text = output.text()
        if self.bwrap is not None:
            ready, _, text = text.partition("\n")
            if ready != _READY:
                why = mask_keylike(output.text()[-300:].strip())
                raise SandboxError(f"the sandbox of the command cannot be used: {why}")
        return _verdict(ended.code, text, overran=ended.overran)

    def _walls(self, place: str, environment: dict[str, str], rules: int) -> list[str]:
        """Return the bubblewrap arguments that precede the command. Without a sandbox, there are none."""
        if self.bwrap is None:
            return []
        folders = dict.fromkeys([*_environments(self.words[0]), self.folder])
        binds = [part for each in (*_SYSTEM, *folders) for part in ("--ro-bind-try", each, each)]
        for secret in dict.fromkeys(
            secret for folder in folders for secret in self._secrets(folder, folder, _ignored_above(folder))
        ):
            if os.path.isdir(secret):
                binds += ["--size", "4096", "--tmpfs", secret, "--remount-ro", secret]
            else:
                binds += ["--ro-bind", f"{place}/hidden", secret]
        identity, change = NOBODY, ()
        if _is_root():
            # The kernel does not count root's processes, so another user runs the command and may read root's files.
            uid = str(FIRST_UID + randbelow(UIDS))
            caps = [part for name in _FOR_ROOT for part in ("--cap-add", name)]
            identity = ("--seccomp", str(rules), *caps)
            change = (_SETPRIV, "--reuid", uid, "--regid", uid, "--clear-groups")
            change += tuple(f"--{kept}={_READS_ALL}" for kept in ("inh-caps", "ambient-caps", "bounding-set"))
        inside = {**environment, "HOME": "/tmp", "TMPDIR": "/tmp"}
        variables = [part for name, value in inside.items() for part in ("--setenv", name, value)]
        return [
            self.bwrap,
            *(*WALLS, *identity, *variables, "--proc", "/proc", "--dev", "/dev"),
            *(part for at in ("/tmp", "/dev/shm") for part in (*_SCRATCH, at)),
            *(*binds, "--ro-bind", place, place, "--remount-ro", "/dev", "--remount-ro", "/"),
            *("--chdir", self.folder, "--", *change, "/bin/sh", "-c", _LIMITS, "sh"),
        ]

    def _secrets(
        self,
        root: str,
        folder: str,
        ignored: tuple[str, ...],
        *,
        installed: bool = False,
    ) -> Iterator[str]:
        """Yield the paths in a folder that must appear empty inside the sandbox.

        Args:
            root: The mounted folder that contains `folder`.
            ignored: Patterns of the `.gitignore` files in parent folders.
            installed: Whether the folder belongs to installed packages, for which only the user's own patterns count.
        """
        if folder == root != self.folder and (folder.startswith(_SYSTEM) or _is_environment(folder)):
            return
        name = folder.rpartition("/")[2]
        installed = installed or (folder != self.folder and (name in _INSTALLED or _is_environment(folder)))
        if installed and not self.hides:
            return
        ignored += () if installed else _patterns_in(f"{folder}/.gitignore")
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                # Packages have many files, so only the user's own patterns are checked there.
                is_ignored = not installed and _is_named(entry.path, ignored)
                secrets = SECRETS + SECRETS_IF_IGNORED if is_ignored else SECRETS
                looks_secret = not installed and _is_named(entry.path, secrets)
                if _is_named(entry.path, self.hides) or (looks_secret and not _is_environment(entry.path)):
                    # A symbolic link may lead out of the sandbox.
                    if (place := os.path.realpath(entry.path)).startswith(f"{root}/"):
                        yield place
                elif entry.is_dir(follow_symlinks=False):
                    below = ("*",) if is_ignored else ignored
                    yield from self._secrets(root, entry.path, below, installed=installed)


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _is_environment(folder: str) -> bool:
    """Whether a folder contains Python and its packages, whatever the folder's name is."""
    return os.path.isfile(f"{folder}/pyvenv.cfg") or any(Path(folder).glob("lib/python3*/os.py"))


def _patterns_in(gitignore: str) -> tuple[str, ...]:
    """Return the patterns of a `.gitignore` file. Patterns with `!`, which restore files, are left out."""
    try:
        lines = Path(gitignore).read_text("utf-8", "replace").lower().splitlines()
    except OSError:
        return ()
    return tuple(line.strip().strip("/") for line in lines if line.strip() and line[0] not in "#!")


def _ignored_above(folder: str) -> tuple[str, ...]:
    return tuple(line for above in Path(folder).parents for line in _patterns_in(f"{above}/.gitignore"))


def _is_named(path: str, patterns: Iterable[str]) -> bool:
    """Whether any of `patterns` matches the end of `path`."""
    path = path.lower()
    name = path.rpartition("/")[2]
    return any(
        fnmatchcase(path, f"*/{each}") if "/" in each else fnmatchcase(name, each) for each in patterns
    )


def _environments(program: str) -> list[str]:
    """Return the paths that the sandbox needs to run a program and the `python3` in the same folder."""
    files = [Path(program).absolute(), Path(os.path.realpath(program))]
    files.append(Path(os.path.realpath(Path(program).parent / "python3")))
    home = Path.home()
    shown: list[Path] = []
    for file in dict.fromkeys(file for file in files if file.exists()):
        prefix = file.parent.parent
        if file.parent.name not in _PROGRAMS:
            # The folder above contains other projects. A mount of `/tmp` would cover the scratch space.
            shown.append(file if file.parent in (home, *home.parents, Path("/tmp")) else file.parent)
        elif prefix in (home, home / ".local"):
            shown += [prefix / "bin", prefix / "lib"]
        elif prefix not in home.parents:
            shown.append(prefix)
    return [str(folder) for folder in shown if folder.exists()]


def _verdict(code: int, output: str, *, overran: bool) -> Verified:
    # Mask keys before the cut, because half a key does not look like a key.
    last = "\n".join(output.strip().splitlines()[-LAST_LINES:])[-4 * LAST_CHARS :]
    last = mask_keylike(last)[-LAST_CHARS:]
    if overran:
        return Verified("wrong", f"the command did not end within {MAX_SECONDS:g} s\n{last}".strip())
    if code in _NOT_RUN:
        return Verified("unknown", f"the command could not be run: {last}"[:500], failed=True)
    if code == 0:
        return Verified("right", "the command ended with 0")
    return Verified("wrong", f"the command ended with {code}:\n{last}".strip())
