"""A worker as a process: drives runs of a store's queue until it is told to end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def worker_process(
    store: str, model: str, *options: str, program: Sequence[str] = ("reasonry",)
) -> Iterator[subprocess.Popen[str]]:
    """Start a worker; go on once it drives."""
    command = [sys.executable, "-m", *program, "worker", "--store", store, "--models", model, *options]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        try:
            assert process.stderr is not None
            said = [process.stderr.readline()]
            while "driving up to" not in said[-1]:
                said.append(process.stderr.readline())
                assert said[-1], said
            yield process
        finally:
            process.kill()
