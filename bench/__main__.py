"""The measurements, one after the other, each in a process of its own.

    uv run python bench              all that need nothing from outside
    uv run python bench NAME …       these
    uv run python bench --list       what there is

A measurement is a script of this folder; `uv run python bench/NAME.py --help` says what it measures and how it is set.
Those with a target exit with 1 if it is missed. Rows of other frameworks are there if `uv sync --group bench` was run.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
FROM_OUTSIDE = {"mcp_conformance": "the conformance suite, from npm, and Node 22"}
"""What is run only if it is named, and what it needs."""


def measurements() -> dict[str, str]:
    """Return every script that can be run, and its headline."""
    found: dict[str, str] = {}
    for path in sorted(HERE.glob("[!_]*.py")):
        text = path.read_text("utf-8")
        if 'if __name__ == "__main__":' in text:
            found[path.stem] = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return found


def main() -> int:
    known = measurements()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*known, []])
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    if given.list:
        for name, headline in known.items():
            needs = f" (needs {FROM_OUTSIDE[name]})" if name in FROM_OUTSIDE else ""
            print(f"{name:<16} {headline}{needs}")
        return 0
    ended: dict[str, str] = {}
    for name in given.names or [name for name in known if name not in FROM_OUTSIDE]:
        print(f"\n== {name}: {known[name]}\n", flush=True)
        start = time.monotonic()
        code = subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=False).returncode
        ended[name] = (
            f"{time.monotonic() - start:6.0f} s   {'' if code == 0 else f'FAILED, exit code {code}'}"
        )
    print("\n== all" if len(ended) > 1 else "")
    for name, end in ended.items():
        print(f"{name:<16} {end}")
    return 1 if any("FAILED" in end for end in ended.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
