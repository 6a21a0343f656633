"""The command line, called in this process as a process of its own calls it: half of what a fork costs."""

import contextlib
import io
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import docstring_parser
from cyclopts import App
from cyclopts.argument import ArgumentCollection
from cyclopts.utils import UNSET

from reasonry.surfaces import cli


def run(arguments: list[str]) -> int:
    """Run a command line as a process that begins does, but find out only once what each command takes."""
    with (
        mock.patch.object(App, "assemble_argument_collection", _assemble_once),
        mock.patch("docstring_parser.parse_from_object", _read_docstrings),
        # A process that begins has not loaded pydantic; where it is loaded, cyclopts has it check each option again.
        mock.patch("cyclopts.argument._argument.parse_version", return_value=(1,)),
    ):
        return cli.run(arguments)


def call_command(
    words: Sequence[str], *, env: Mapping[str, str], cwd: str | Path, text: bytes = b""
) -> subprocess.CompletedProcess[str]:
    """Run a command line with its own environment, folder and streams.

    Args:
        text: Its standard input.
    """
    out, err = _stream(), _stream()
    with (
        mock.patch.dict(os.environ, env, clear=True),
        mock.patch("sys.stdin", _stream(text)),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run(list(words))
    return subprocess.CompletedProcess(list(words), code, _written(out), _written(err))


_read_docstrings = cache(docstring_parser.parse_from_object)
_assemble: Callable[..., ArgumentCollection] = App.assemble_argument_collection
_ASSEMBLED: dict[Any, ArgumentCollection] = {}


def _assemble_once(command: App, **named: Any) -> ArgumentCollection:
    """Return what a command takes, without what was read into it the last time: to find it out takes half of a call."""
    key = (command.default_command, *named.items())
    if key not in _ASSEMBLED:
        _ASSEMBLED[key] = _assemble(command, **named)
    for argument in _ASSEMBLED[key]:
        argument.tokens, argument._value = [], UNSET
        argument._marked_converted = argument._mark_converted_override = False
    return ArgumentCollection(_ASSEMBLED[key])


class Screen(io.StringIO):
    """A terminal that is looked at."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def _stream(text: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text), "utf-8", "backslashreplace", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
