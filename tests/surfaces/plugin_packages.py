"""Packages with entry points, laid out in a folder as an installer leaves them."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "reasonry-example-plugin"
PACKAGE = "reasonry-example-plugin"

FAULTY = {
    "missing": "import there_is_no_such_module",
    "leaves": "raise SystemExit(3)",
    "worst": "raise BaseException('out of everything')",
    "stops": "raise GeneratorExit",
    "mute": "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\n\nraise Mute",
    "number": "VALUE = 3",
    "empty": "OTHER = 3",
    "table": (
        "from reasonry import Stage, Strategy\n"
        "VALUE = Strategy('t', 'T', 's', 's', (Stage('a', ('nowhere',)), Stage('b')))"
    ),
    "options": (
        "from reasonry import Stage, Strategy\n"
        "VALUE = Strategy('t', 'T', 's', 's', (Stage('a', ('b',)), Stage('b')), options=dict)"
    ),
    "form": (
        "from reasonry import Stage, Strategy\n"
        "VALUE = Strategy('t', 'T', 's', 's', (Stage('a', ('b',), reply=object), Stage('b')))"
    ),
    "fine": (
        "from reasonry import Stage, Strategy\n"
        "print('loud')\n"
        "VALUE = Strategy('t', 'Fine', 's', 'It is fine.', (Stage('a', ('b',)), Stage('b')))"
    ),
}
"""Modules whose `VALUE` is a strategy; only the last one loads."""


def install_example(target: Path) -> None:
    """Build the example's wheel and install it into a folder; without uv, lay it out as the installer would."""
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
        lay_out(target, project["name"], project["version"], project["entry-points"])
        name = "reasonry_example_plugin"
        shutil.copytree(EXAMPLE / "src" / name, target / name)
        return
    wheels = target.parent / "wheels"
    commands = (
        ["build", "--wheel", "--no-progress", "--out-dir", str(wheels), str(EXAMPLE)],
        ["pip", "install", "--no-deps", "--target", str(target), "--python", sys.executable, "--find-links"],
    )
    subprocess.run([uv, "--offline", *commands[0]], check=True, capture_output=True)
    (wheel,) = wheels.glob("*.whl")
    subprocess.run([uv, "--offline", *commands[1], str(wheels), str(wheel)], check=True, capture_output=True)


def install_faulty(target: Path) -> None:
    """Install a package of which all strategies but one fail to load, each in a way of its own."""
    for name, source in FAULTY.items():
        (target / f"faulty_{name}.py").write_text(source, "utf-8")
    strategies = {name: f"faulty_{name}:VALUE" for name in FAULTY}
    others = {
        f"reasonry.{kind}": {"number": "faulty_number:VALUE"} for kind in ("verifiers", "models", "tools")
    }
    lay_out(target, "Faulty_Parts", "0.1", {"reasonry.strategies": {**strategies, "a b": "x:y"}, **others})


def lay_out(target: Path, name: str, version: str, points: Mapping[str, Mapping[str, str]]) -> None:
    """Write the metadata of an installed package."""
    folder = target / f"{name.replace('-', '_').lower()}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    lines = [
        line
        for group, entries in points.items()
        for line in (f"[{group}]", *(f"{entry} = {place}" for entry, place in entries.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
