"""What must hold of a built source distribution and wheel."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.metadata import Metadata
from source import LINK, git, load_generator, read_project

LARGEST_BYTES = 5_000_000
"""Of one artefact; it is a tenth of this."""

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Expected:
    """What the artefacts are held against.

    Args:
        name: Of the package.
        version: Of the package.
        marker: The line of the README by which the MCP registry knows the owner.
        package: The files of the package, as git has them, relative to `src`.
        licences: The files with licences, relative to the project.
        scripts: The commands that are installed, and what they call.
        machine: Paths of the machine that builds, which must not be found in what it builds.
    """

    name: str
    version: str
    marker: str
    package: frozenset[str]
    licences: frozenset[str]
    scripts: Mapping[str, str]
    machine: frozenset[str]


def expect(root: Path, *folders: Path) -> Expected:
    """Read from the source what its artefacts are to be.

    Args:
        folders: Where they are built, beside the project itself.
    """
    project: dict[str, Any] = read_project(root)
    generator = load_generator(root)
    tracked = git(root, "ls-files", "-z").split("\0")
    package = frozenset(path.removeprefix("src/") for path in tracked if path.startswith("src/"))
    licences = frozenset(
        path for path in tracked if _is_licence(path) and path.startswith(("LICENSE", "NOTICE", "src/"))
    )
    return Expected(
        name=project["name"],
        version=project["version"],
        marker=f"<!-- mcp-name: {generator.registry_entry(generator.read_source(root))['name']} -->",
        package=package,
        licences=licences,
        scripts=project["scripts"],
        machine=frozenset(str(path) for path in (root.resolve(), *folders)) | {f"{Path.home()}/"},
    )


def _is_licence(path: str) -> bool:
    return re.match(r"(?i)(.*\b)?(licen[cs]e|notice|copying)\b", PurePosixPath(path).name) is not None


def check_folder(folder: Path, expected: Expected) -> list[str]:
    """Return what is wrong with the artefacts in a folder: one of each kind, and nothing else."""
    stem = f"{expected.name}-{expected.version}"
    wheel, sdist = folder / f"{stem}-py3-none-any.whl", folder / f"{stem}.tar.gz"
    found = {path for path in folder.iterdir() if path.name != ".gitignore"}
    problems = [f"there is no {path.name}" for path in (wheel, sdist) if path not in found]
    problems += [f"{path.name} should not be there" for path in sorted(found - {wheel, sdist})]
    if problems:
        return problems
    return [
        *(f"wheel: {problem}" for problem in check_wheel(wheel, expected)),
        *(f"sdist: {problem}" for problem in check_sdist(sdist, expected)),
    ]


def check_wheel(path: Path, expected: Expected) -> list[str]:
    """Return what is wrong with a wheel."""
    files = _read_wheel(path)
    info = f"{expected.name}-{expected.version}.dist-info"
    licences = {f"{info}/licenses/{licence}" for licence in expected.licences}
    written = {f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
    problems = [
        *_compare_names(files, {*expected.package, *licences, *written}),
        *_look_into(files, path, expected),
        *_check_metadata(files.get(f"{info}/METADATA", b""), expected),
        *_check_scripts(files, files.get(f"{info}/entry_points.txt", b""), expected),
    ]
    return problems or _try_to_start(path, expected)


def check_sdist(path: Path, expected: Expected) -> list[str]:
    """Return what is wrong with a source distribution."""
    top = f"{expected.name}-{expected.version}/"
    files, problems = _read_sdist(path)
    written = {"PKG-INFO", "pyproject.toml", "README.md", *expected.licences}
    optional = {f"{top}pyproject.toml.orig"}  # The file as it was before the backend resolved it.
    names = {f"{top}{name}" for name in {*(f"src/{name}" for name in expected.package), *written}}
    return [
        *problems,
        *_compare_names(files.keys() - optional, names),
        *_look_into(files, path, expected),
        *_check_metadata(files.get(f"{top}PKG-INFO", b""), expected),
    ]


def _read_wheel(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def _read_sdist(path: Path) -> tuple[dict[str, bytes], list[str]]:
    files: dict[str, bytes] = {}
    problems: list[str] = []
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                files[member.name] = content.read()
            elif not member.isdir():
                problems.append(f"{member.name} is neither a file nor a folder")
    return files, problems


def _compare_names(files: Iterable[str], names: Iterable[str]) -> list[str]:
    """Say what is missing and what is too much: tests, caches, `.pth` files and whatever git does not have."""
    there, wanted = set(files), set(names)
    return [
        *(f"{name} is missing" for name in sorted(wanted - there)),
        *(f"{name} should not be there" for name in sorted(there - wanted)),
    ]


def _look_into(files: Files, path: Path, expected: Expected) -> list[str]:
    problems = [
        f"{name} holds a path of this machine: {place}"
        for name, content in sorted(files.items())
        for place in sorted(expected.machine)
        if place.encode() in content
    ]
    if path.stat().st_size > LARGEST_BYTES:
        problems.append(f"{path.stat().st_size:,} bytes are more than {LARGEST_BYTES:,}")
    return problems


def _check_metadata(text: bytes, expected: Expected) -> list[str]:
    try:
        metadata = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        return [f"metadata: {error}" for error in group.exceptions]
    problems: list[str] = []
    if (metadata.name, str(metadata.version)) != (expected.name, expected.version):
        problems.append(
            f"metadata of {metadata.name} {metadata.version}, not of {expected.name} {expected.version}"
        )
    if set(metadata.license_files or ()) != expected.licences:
        problems.append(f"licence files: {metadata.license_files} are not all of {sorted(expected.licences)}")
    if not metadata.license_expression or not metadata.requires_python or not metadata.project_urls:
        problems.append("licence, versions of Python and addresses must be said")
    return problems + _check_description(metadata, expected)


def _check_description(metadata: Metadata, expected: Expected) -> list[str]:
    if metadata.description_content_type != "text/markdown" or not metadata.description:
        return ["the description is not the README, as text/markdown"]
    problems = [
        f"the description links to {target}, which leads nowhere on a package index"
        for _, _, target in LINK.findall(metadata.description)
        if not target.startswith(("https://", "#"))
    ]
    if expected.marker not in metadata.description.splitlines():
        problems.append(f"the description has no line {expected.marker}")
    return problems


def _check_scripts(files: Files, text: bytes, expected: Expected) -> list[str]:
    parser = configparser.ConfigParser()
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    parser.read_string(text.decode("utf-8"))
    scripts = dict(parser["console_scripts"]) if "console_scripts" in parser else {}
    problems = (
        [] if scripts == dict(expected.scripts) else [f"commands: {scripts} are not {dict(expected.scripts)}"]
    )
    for command, target in scripts.items():
        module = target.partition(":")[0].replace(".", "/")
        if not {f"{module}.py", f"{module}/__init__.py"} & files.keys():
            problems.append(f"{command} calls {target}, which is not in the wheel")
    return problems


def _try_to_start(path: Path, expected: Expected) -> list[str]:
    """Run the package as it is in the wheel, with the dependencies that are installed here."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        start = f"import sys; sys.path.insert(0, {folder!r}); import {expected.name}"
        code = f"{start} as package; print(package.__file__); from {expected.name}.surfaces.cli import main; main()"
        command = [sys.executable, "-c", code, "strategies"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, cwd=folder)
        if done.returncode == 0 and done.stdout.startswith(folder) and "linear" in done.stdout:
            return []
        return [f"it does not start: {(done.stderr or done.stdout).strip().rpartition(chr(10))[2][:500]}"]
