"""Where Reasonry installs: every platform and Python, by the versions of the lock, from wheels alone.

    uv run python packaging/platforms.py            # the base installation, and how large it is here
    uv run python packaging/platforms.py --extras   # also each extra, where it can be had
    uv run python packaging/platforms.py --json

`uv` resolves the lock's versions for each platform and Python with `--only-binary :all:`. The exit code is 1 where the
base installation has no wheel for one of them or is over its limits, and 3 where the package index cannot be reached,
so that nothing was found out. An extra that cannot be had somewhere is shown and is no failure.

The size is that of all files which installing the lock's wheels on this machine writes, without bytecode.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
PLATFORMS = {
    "Linux x86-64 (glibc)": "x86_64-manylinux_2_28",
    "Linux aarch64 (glibc)": "aarch64-manylinux_2_28",
    "Linux x86-64 (musl)": "x86_64-unknown-linux-musl",
    "Linux aarch64 (musl)": "aarch64-unknown-linux-musl",
    "macOS arm64": "aarch64-apple-darwin",
    "macOS x86-64": "x86_64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
    "Windows arm64": "aarch64-pc-windows-msvc",
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MAX_PACKAGES = 60
MAX_MB = 90.0
FAILED, UNREACHABLE = 1, 3
_MISSING = re.compile(r"\b([\w.-]+)==\S+ has no (?:usable )?wheels", re.IGNORECASE)


class UnreachableError(Exception):
    """The package index gave no answer."""


def uv(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run uv, which is beside this Python, on the path, or named by `UV`."""
    beside = Path(sys.executable).with_name("uv")
    program = os.environ.get("UV") or shutil.which("uv") or str(beside)
    return subprocess.run(
        [program, *words], cwd=ROOT, input=text, capture_output=True, encoding="utf-8", check=False
    )


def requirements(extra: str = "") -> str:
    """Return the lock's pins of an installation, with their markers, as a requirements file."""
    words = ["--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "--no-header", "--no-annotate"]
    done = uv("export", *words, *(["--extra", extra] if extra else []))
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def resolve(pins: str, platform: str, python: str) -> dict[str, Any]:
    """Return how many packages are installed, or which one has no wheel.

    Raises:
        UnreachableError: That cannot be found out.
    """
    done = uv(
        *("pip", "compile", "-", "--no-deps", "--only-binary", ":all:", "--no-header", "--no-annotate"),
        *("--python-platform", platform, "--python-version", python, "--no-python-downloads"),
        text=pins,
    )
    if done.returncode == 0:
        return {"packages": len(re.findall("==", done.stdout))}
    missing = _MISSING.findall(" ".join(done.stderr.split()))
    if not missing:
        raise UnreachableError(done.stderr.strip()[-600:])
    return {"missing": sorted(set(missing))}


def table(pins: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what `resolve` says of every platform and Python."""
    places = [(name, python) for name in PLATFORMS for python in PYTHONS]
    with ThreadPoolExecutor(max_workers=8) as pool:
        found = list(pool.map(lambda place: resolve(pins, PLATFORMS[place[0]], place[1]), places))
    cells = dict(zip(places, found, strict=True))
    return {name: {python: cells[name, python] for python in PYTHONS} for name in PLATFORMS}


def measure(pins: str) -> dict[str, Any]:
    """Install this package and the pins into a folder; return how many packages these are, and their MB."""
    with TemporaryDirectory() as folder:
        words = [
            "pip",
            "install",
            "--target",
            folder,
            "--no-deps",
            "--only-binary",
            ":all:",
            "--link-mode",
            "copy",
        ]
        done = uv(*words, "--python", sys.executable, "--no-compile-bytecode", "-r", "-", text=pins)
        if done.returncode:
            raise UnreachableError(done.stderr.strip()[-600:])
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        own = [path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"]
        size = sum(path.stat().st_size for path in (*files, *own))
        packages = 1 + sum(path.name == "METADATA" for path in files)
    return {"packages": packages, "megabytes": round(size / 1e6, 1)}


def failures(document: dict[str, Any]) -> list[str]:
    """Return what keeps the base installation from its promise."""
    lines = [
        f"{platform}, Python {python}: no wheel of {', '.join(cell['missing'])}"
        for platform, row in document["base"].items()
        for python, cell in row.items()
        if "missing" in cell
    ]
    size = document["size"]
    if size["packages"] > MAX_PACKAGES:
        lines.append(f"{size['packages']} packages, {MAX_PACKAGES} at most")
    if size["megabytes"] > MAX_MB:
        lines.append(f"{size['megabytes']} MB, {MAX_MB:g} at most")
    return lines


def show(title: str, rows: dict[str, dict[str, dict[str, Any]]]) -> Iterable[str]:
    """Yield a table as lines."""
    cells = {
        name: [str(cell.get("packages") or "no " + ", ".join(cell["missing"])) for cell in row.values()]
        for name, row in rows.items()
    }
    wide = max(len(title), *map(len, cells)) + 2
    widths = [
        max(len(column), 5) + 2 for column in (max(one, key=len) for one in zip(*cells.values(), strict=True))
    ]
    yield title.ljust(wide) + "".join(map(str.ljust, PYTHONS, widths))
    for name, row in cells.items():
        yield name.ljust(wide) + "".join(map(str.ljust, row, widths))


def main() -> int:
    """Find it out and show it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--extras", action="store_true", help="each extra too")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [name for name in project["optional-dependencies"] if name != "all"] if options.extras else []
    try:
        base = requirements()
        document: dict[str, Any] = {"base": table(base), "size": measure(base)}
        document["extras"] = {extra: table(requirements(extra)) for extra in extras}
    except UnreachableError as error:
        print(f"the package index gave no answer, so nothing was found out: {error}", file=sys.stderr)
        return UNREACHABLE
    document["failures"] = failures(document)
    if options.json:
        print(json.dumps(document, indent=2))
        return FAILED if document["failures"] else 0
    print("\n".join(show("reasonry", document["base"])))
    for extra, rows in document["extras"].items():
        print("", *show(f"reasonry[{extra}]", rows), sep="\n")
    size = document["size"]
    print(f"\nhere: {size['packages']} packages, {size['megabytes']} MB without bytecode")
    print(*(f"FAILED: {line}" for line in document["failures"]), sep="\n", end="")
    return FAILED if document["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
