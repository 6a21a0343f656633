"""The table of platforms: what counts as a failure, and that nothing is claimed where nothing was found out."""

import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..releasing import ROOT, load_script

SCRIPT = ROOT / "packaging" / "platforms.py"
PLATFORMS = load_script(SCRIPT)
UV = os.environ.get("UV") or shutil.which("uv")


@pytest.fixture
def good() -> Any:
    row = {python: {"packages": 36} for python in PLATFORMS.PYTHONS}
    return {
        "base": {name: copy.deepcopy(row) for name in PLATFORMS.PLATFORMS},
        "size": {"packages": 37, "megabytes": 45.0},
    }


def test_a_missing_wheel_and_a_limit_that_is_passed_are_failures(good: Any) -> None:
    assert PLATFORMS.failures(good) == []
    good["base"]["Windows arm64"]["3.11"] = {"missing": ["pyyaml"]}
    good["size"] = {"packages": 61, "megabytes": 90.1}
    assert PLATFORMS.failures(good) == [
        "Windows arm64, Python 3.11: no wheel of pyyaml",
        "61 packages, 60 at most",
        "90.1 MB, 90 at most",
    ]


def test_the_table_has_a_row_for_each_platform_and_a_column_for_each_python(good: Any) -> None:
    good["base"]["macOS arm64"]["3.12"] = {"missing": ["apsw", "msgspec"]}
    head, *rows = PLATFORMS.show("reasonry", good["base"])
    assert head.split() == ["reasonry", *PLATFORMS.PYTHONS]
    assert [row.split("  ")[0] for row in rows] == list(PLATFORMS.PLATFORMS)
    (mac,) = [row for row in rows if row.startswith("macOS arm64")]
    assert "no apsw, msgspec" in mac
    assert len({row.rindex("36") for row in rows}) == 1


@pytest.mark.skipif(UV is None, reason="uv is not here")
def test_without_an_index_it_says_that_nothing_was_found_out(tmp_path: Path) -> None:
    environ = {**os.environ, "UV": str(UV), "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path)}
    for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS"):
        environ.pop(name, None)
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], env=environ, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "nothing was found out" in done.stderr
