"""Runs the examples of the commands for real, as in a terminal of 80 columns, but at a time of its own."""

import contextlib
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from reasonry import records
from reasonry.surfaces.cli import watch
from tests.forked import forking_python
from tests.in_process import Screen, run
from tests.servers.postgres import postgres_server

BEGINS_NS = 1_778_751_000_000_000_000  # 14 May 2026, 09:30 UTC
BETWEEN_COMMANDS_NS = 70_000_000_000
VARIES = re.compile(r"\d+\.\d\d s\b|in \d+ ms|, \d+ ms|[\d,]+ bytes|^seconds(?: +[\d.]+)+", re.MULTILINE)
"""What takes as long, or becomes as large, as it happens to."""


class Keyboard(io.TextIOWrapper):
    def __init__(self, text: str | None) -> None:
        super().__init__(io.BytesIO((text or "").encode()), "utf-8")
        self.is_terminal = text is None

    def isatty(self) -> bool:
        return self.is_terminal


@contextlib.contextmanager
def prepared(folder: Path) -> Iterator[Iterator[int]]:
    """Prepare an empty store and a clock that stands still but between commands; yield what moves it."""
    shift = [0]
    with pytest.MonkeyPatch.context() as patch:
        for name in [
            name for name in os.environ if name.startswith("REASONRY_") or name.endswith("_API_KEY")
        ]:
            patch.delenv(name)
        kept = {"REASONRY_STORE": "store.db", "COLUMNS": "80", "LINES": "24", "TERM": "dumb", "TZ": "UTC"}
        # No program of the machine is found: what is installed beside Reasonry changes nothing.
        for name, value in {**kept, "PATH": "", "HOME": str(folder), "OLLAMA_HOST": "127.0.0.1:9"}.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        if hasattr(time, "tzset"):
            time.tzset()
        patch.setattr(time, "time_ns", lambda: BEGINS_NS + shift[0])
        patch.setattr(time, "time", lambda: (BEGINS_NS + shift[0]) / 1e9)
        patch.setattr(
            records, "os", SimpleNamespace(urandom=lambda count: b"\x2d\x1f\x6e\x9c\x0b\x37\xa2\x5c"[:count])
        )
        patch.setattr(records, "_last", 0)
        # What is drawn live is not what stays on the screen.
        patch.setattr(watch, "sys", SimpleNamespace(stderr=io.StringIO()))
        yield (shift.__setitem__(0, shift[0] + BETWEEN_COMMANDS_NS) or shift[0] for _ in itertools.count())
    if hasattr(time, "tzset"):
        time.tzset()


def perform(line: str) -> str:
    """Run a command as it stands in an example, and return what it printed."""
    words = shlex.split(line)
    text = None
    if "|" in words:
        place = words.index("|")
        assert words[0] == "echo"
        text, words = " ".join(words[1:place]) + "\n", words[place + 1 :]
    if ">" in words:
        place = words.index(">")
        text = " ".join(words[1:place]) + "\n" if words[0] == "echo" else perform(shlex.join(words[:place]))
        Path(words[place + 1]).write_text(text, "utf-8")
        return ""
    assert words[0] == "reasonry", line
    if words[1] == "mcp":
        # The server reads its input below Python.
        done = subprocess.run(
            [forking_python(), "-m", *words], input=text, capture_output=True, text=True, check=True
        )
        return done.stdout
    if words[1] in ("serve", "worker"):
        # It says where it is, and continues until it is ended.
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with contextlib.ExitStack() as held:
            if words[1] == "worker":
                words[-1] = held.enter_context(postgres_server()).url
            command = [forking_python(), "-m", *words]
            server = held.enter_context(subprocess.Popen(command, text=True, **both))  # type: ignore[call-overload]
            held.callback(server.terminate)
            assert server.stdout is not None
            return str(server.stdout.readline())
    screen, keyboard = Screen(), sys.stdin
    sys.stdin = Keyboard(text)
    try:
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
            run(words[1:])
    finally:
        sys.stdin = keyboard
    return screen.getvalue()


def pattern(expected: str) -> re.Pattern[str]:
    """Return what an output of an example has to be: "…" stands for anything."""
    parts = (re.escape(VARIES.sub("<varies>", part)) for part in expected.split("…"))
    return re.compile(".*".join(parts), re.DOTALL)


def comparable(output: str) -> str:
    """Return an output without what differs from run to run, the width of columns too: times may be longer."""
    lines = (line.rstrip() for line in VARIES.sub("<varies>", output).strip("\n").split("\n"))
    return "\n".join(re.sub(r"(?<=\S) {2,}", "  ", line) for line in lines)


def commands_of(example: str) -> list[tuple[str, str]]:
    """Return the commands of an example, each with what it is to print."""
    found = re.split(r"^\$ ", example, flags=re.MULTILINE)[1:]
    return [(command, output.strip("\n")) for command, _, output in (part.partition("\n") for part in found)]


def main() -> None:
    """Write the examples again; those that print what they say stay as they are."""
    import tempfile

    from reasonry.surfaces.cli import commands

    sections: list[str] = []
    with tempfile.TemporaryDirectory() as folder, prepared(Path(folder)) as clock:
        for name, example in commands.read_examples().items():
            sections.append(f"## {name}\n")
            for command, expected in commands_of(example):
                output = "\n".join(line.rstrip() for line in perform(command).strip("\n").split("\n"))
                is_true = pattern(comparable(expected)).fullmatch(comparable(output))
                sections[-1] += f"$ {command}\n{expected if is_true else output}".rstrip() + "\n"
                next(clock)
    Path(str(commands.__file__)).with_name("examples.txt").write_text("\n".join(sections), "utf-8")


if __name__ == "__main__":
    main()
