"""Measure how long `reasonry mcp` takes from being started to its list of tools, installed as a tool.

    uv run python bench/start.py                              installs the clone into a temporary folder first
    uv run python bench/start.py --command reasonry mcp       another command, as it is

`uv tool install --compile-bytecode` is how it is installed. A start of the same Python that does nothing stands beside
it, as the time of both grows with the load of the machine. The target is 250 ms, or 25 such starts where these are
slow. The exit code is 1 if it is missed.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mcp import Server, say

ROOT = Path(__file__).parents[1]
TARGET_MS = 250.0
BARE_STARTS = 25.0
ROUNDS = 15


def install(folder: Path) -> tuple[list[str], str]:
    """Install the clone as a tool; return the command of the server, and the tool's Python."""
    environ = {**os.environ, "UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    uv = os.environ.get("UV", "uv")
    subprocess.run([uv, "tool", "install", "-q", "--compile-bytecode", str(ROOT)], env=environ, check=True)
    place = folder / "tools" / "reasonry" / ("Scripts" if os.name == "nt" else "bin")
    return [str(folder / "bin" / "reasonry"), "mcp"], str(place / "python")


def measure(command: list[str], python: str, folder: Path) -> tuple[float, float]:
    """Return the medians, in ms, of starting the server until its tools are listed, and of starting Python alone."""
    server = Server("reasonry", command)
    served: list[float] = []
    bare: list[float] = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        with server.open(folder) as client:
            assert client.ask("tools/list", {})["result"]["tools"]
            served.append((time.perf_counter() - began) * 1e3)
        began = time.perf_counter()
        subprocess.run([python, "-c", "pass"], check=True)
        bare.append((time.perf_counter() - began) * 1e3)
    return statistics.median(served[1:]), statistics.median(bare[1:])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--command", nargs="+", metavar="WORD", help="the server; default: a fresh installation"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reasonry-bench-") as name:
        folder = Path(name)
        say("installing")
        command, python = (given.command, sys.executable) if given.command else install(folder)
        served, bare = measure(command, python, folder)
    print(f"start to tools/list {served:.0f} ms; Python alone {bare:.0f} ms; ratio {served / bare:.1f}")
    return 0 if served <= max(TARGET_MS, BARE_STARTS * bare) else 1


if __name__ == "__main__":
    sys.exit(main())
