"""The command line, called in this process as a process of its own calls it: half of what a fork costs."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

from reasonry.surfaces.cli import run


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


def _stream(text: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text), "utf-8", "backslashreplace", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
