"""Builds the source distribution and the wheel, and checks them. Publishes nothing.

    uv run python release                   into dist/
    uv run python release --check FOLDER    check what was built before
    uv run python release --tag v1.2.3      refuse if this is not the version

It is built from what is committed, with the links of the README made absolute, as a package index needs them. Exit code
1: something does not hold; each line on standard error says what.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from artefacts import check_folder, expect
from source import find_problems, link_to_repository, load_generator, read_project

ROOT = Path(__file__).resolve().parents[1]


def build(root: Path, out: Path) -> list[str]:
    """Build what is committed, in place of what was built before; return what is wrong with it."""
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        return ["uv is not there: pip install uv"]
    with tempfile.TemporaryDirectory() as name:
        stage = Path(name).resolve()
        copy_commit(root, stage)
        for old in out.glob(f"{read_project(root)['name']}-*"):
            old.unlink()
        command = [uv, "build", "--quiet", "--no-sources", "--out-dir", str(out), str(stage)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            return [f"uv build: {done.stderr.strip()}"]
        return check_folder(out, expect(root, stage))


def copy_commit(root: Path, stage: Path) -> None:
    """Copy the files of the latest commit, with a README that can be read outside of the repository."""
    copy = ["checkout-index", "--all", "--prefix", f"{stage.as_posix()}/"]
    subprocess.run(["git", "-C", str(root), *copy], capture_output=True, check=True)
    readme = stage / "README.md"
    repository = load_generator(root).read_source(root).repository
    text = link_to_repository(readme.read_text("utf-8"), repository, read_project(root)["version"])
    readme.write_text(text, "utf-8", newline="\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="check the artefacts there, build none")
    parser.add_argument("--tag", help="the tag that is being released")
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the project; default: the one of this program"
    )
    parser.add_argument("--out", type=Path, help="default: dist/ of the project")
    given = parser.parse_args()
    root, out = given.root.resolve(), given.out or given.root.resolve() / "dist"
    problems = check_folder(given.check, expect(root)) if given.check else find_problems(root, given.tag)
    if not problems and not given.check:
        problems = build(root, out)
    for problem in problems:
        print(f"release: {problem}", file=sys.stderr)
    if not problems:
        print(
            "\n".join(
                str(path) for path in sorted((given.check or out).iterdir()) if path.name != ".gitignore"
            )
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
