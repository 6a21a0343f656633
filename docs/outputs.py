"""What the examples of a page print: a block of shell or Python and, where it is shown, its output as a `text` block.

Ids and times differ from run to run; they are shown as those of one run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = re.compile(
    r"^```(?P<language>sh|python)\n(?P<script>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
END = "-- end of block {} --"
VARYING = (
    (
        re.compile(r"\b01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
        "01a2018f-c716-7000-bf3f-d3445bc1fa43",
    ),
    (re.compile(r"\b01[0-9a-f]{6,10}\b(?!-)"), "01a2018f"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s)\b"), "0.01 s"),
    (re.compile(r"\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?)?"), "2026-11-22 10:00"),
)


class Example(NamedTuple):
    """A block of a page and the output that is shown below it, if any is."""

    language: str
    script: str
    shown: str | None


def examples(page: str) -> list[Example]:
    """Return the blocks of a page in shell or Python."""
    return [Example(one["language"], one["script"], one["output"]) for one in EXAMPLE.finditer(page)]


def environment(folder: Path) -> dict[str, str]:
    """Return an environment with a store of its own and no keys."""
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "REASONRY_STORE": str(folder / "store.db"),
        "OLLAMA_HOST": "127.0.0.1:9",
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
    }


def printed(scripts: Sequence[Example], folder: Path) -> list[str]:
    """Run examples one after another in one shell, in a folder with the files they use; return what each printed.

    Raises:
        RuntimeError: One of them failed.
    """
    for name in ("examples", "docs/strategies/replies"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted, dirs_exist_ok=True)
    lines = ["exec 2>&1\n"]
    for number, one in enumerate(scripts):
        if one.language == "python":
            (folder / f"example_{number}.py").write_text(one.script, "utf-8", newline="\n")
        lines += [
            one.script if one.language == "sh" else f"python example_{number}.py\n",
            f"echo '{END.format(number)}'\n",
        ]
    (folder / "commands.sh").write_text("".join(lines), "utf-8", newline="\n")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "commands.sh"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )
    if done.returncode or "Traceback" in done.stdout:
        raise RuntimeError(f"exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    found, rest = [], done.stdout
    for number in range(len(scripts)):
        output, _, rest = rest.partition(END.format(number) + "\n")
        found.append(_steady(output))
    return found


def _steady(output: str) -> str:
    for pattern, shown in VARYING:
        output = pattern.sub(shown, output)
    return "".join(f"{line.rstrip()}\n" for line in output.splitlines())


def rewritten(page: str, outputs: list[str]) -> str:
    """Return a page with the outputs that it shows as they are now."""
    waiting = iter(outputs)

    def one(block: re.Match[str]) -> str:
        output = next(waiting)
        if block["output"] is None:
            return block[0]
        return f"```{block['language']}\n{block['script']}```\n\n```text\n{output}```\n"

    return EXAMPLE.sub(one, page)


def main() -> int:
    """Write the outputs of the pages of tasks as they are now."""
    for path in sorted((ROOT / "docs" / "tasks").glob("*.md")):
        page = path.read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder:
            new = rewritten(page, printed(examples(page), Path(folder)))
        if new != page:
            path.write_text(new, "utf-8", newline="\n")
            sys.stdout.write(f"written: {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
