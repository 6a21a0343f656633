"""Style, types and floors are part of the tests: one command checks everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CHECKS = {
    "style": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["basedpyright"],
    "floors": ["lint-imports", "--no-cache"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_check_passes(check: str) -> None:
    program, *arguments = CHECKS[check]
    command = [str(Path(sys.executable).parent / program), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
