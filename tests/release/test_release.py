"""A release is built from what is committed and whole; what does not hold is said, and nothing is built."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ..releasing import (
    OWNER,
    can_release,
    change,
    commit,
    date_changelog,
    git,
    releasable,
    set_owner,
)

pytestmark = [
    pytest.mark.skipif(not can_release(), reason="a release takes git, a clone and uv"),
    pytest.mark.slow,
]

Files = dict[str, bytes]
VERSION = "0.1.0"
PROJECT_VERSION = r'\A(\[project\]\nname = ".*"\nversion = )".*"'
INFO = f"reasonry-{VERSION}.dist-info"


def release(root: Path, *arguments: str) -> tuple[int, list[str]]:
    """Run the program of that project; return its exit code and what it says."""
    command = [sys.executable, str(root / "release"), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, (done.stdout + done.stderr).splitlines()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = releasable(tmp_path_factory.mktemp("project"))
    change(root / "pyproject.toml", PROJECT_VERSION, rf'\g<1>"{VERSION}"')
    return root


@pytest.fixture(scope="module")
def built(project: Path) -> Path:
    code, said = release(project)
    assert code == 0, said
    return project / "dist"


@pytest.fixture(scope="module")
def artefacts(project: Path) -> Iterator[ModuleType]:
    """The checks of that project, called in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(project / "release")
        yield import_module("artefacts")


@pytest.fixture(scope="module")
def expected(project: Path, artefacts: ModuleType) -> Any:
    return artefacts.expect(project)


def clone(project: Path, to: Path) -> Path:
    git(to, "clone", "-q", str(project), "project")
    return to / "project"


def wheel_of(folder: Path) -> Path:
    return folder / f"reasonry-{VERSION}-py3-none-any.whl"


def sdist_of(folder: Path) -> Path:
    return folder / f"reasonry-{VERSION}.tar.gz"


def contents(wheel: Path) -> Files:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def test_what_is_built_is_checked_again_in_another_place(project: Path, built: Path) -> None:
    assert release(project, "--check", str(built)) == (0, [str(wheel_of(built)), str(sdist_of(built))])


def test_the_wheel_has_the_package_and_what_it_needs(built: Path) -> None:
    files = contents(wheel_of(built))
    assert "reasonry/py.typed" in files
    assert f"{INFO}/licenses/LICENSE" in files
    assert any(name.startswith("reasonry/surfaces/setup/skills/think-it-through/") for name in files)
    assert not [name for name in files if "test" in Path(name).parts]
    metadata = files[f"{INFO}/METADATA"].decode()
    assert f"<!-- mcp-name: io.github.{OWNER}/reasonry -->" in metadata
    pictures = f"https://raw.githubusercontent.com/{OWNER}/reasonry/v{VERSION}/docs"
    for picture in (
        f"]({pictures}/chart.svg)",
        f'src="{pictures}/page.png"',
        f'srcset="{pictures}/page-dark.png"',
    ):
        assert picture in metadata
    assert f"](https://github.com/{OWNER}/reasonry/blob/v{VERSION}/docs/mcp.md)" in metadata
    assert f"\ngit clone https://github.com/{OWNER}/reasonry reasonry && cd reasonry\n" in metadata
    assert "REPOSITORY_URL" not in metadata


def test_two_builds_of_one_commit_are_the_same(project: Path, built: Path, tmp_path: Path) -> None:
    code, said = release(project, "--out", str(tmp_path))
    assert code == 0, said
    assert wheel_of(tmp_path).read_bytes() == wheel_of(built).read_bytes()


def test_a_project_without_an_owner_is_told_all_that_it_lacks(project: Path, tmp_path: Path) -> None:
    root = clone(project, tmp_path)
    set_owner(root, "OWNER")
    add_an_entry(root)
    code, said = release(root)
    assert code == 1
    assert [line.partition(":")[2].split()[:4] for line in said] == [
        ["the", "owner", "is", "not"],
        ["CHANGELOG.md", "has", "unreleased", "entries:"],
    ]
    assert not (root / "dist").exists()


def write_stray_file(root: Path) -> None:
    (root / "src" / "reasonry" / "stray.py").write_text("", "utf-8")


def name_the_placeholder(root: Path) -> None:
    change(root / "docs" / "README.md", r"\Z", "\nhttps://github.com/OWNER/reasonry\n")
    commit(root)


def change_the_version(root: Path) -> None:
    change(root / "pyproject.toml", PROJECT_VERSION, r'\g<1>"9.9.9"')
    commit(root)


def add_an_entry(root: Path) -> None:
    change(root / "CHANGELOG.md", r"\A# Changelog\n", "# Changelog\n\n## Unreleased\n\n- A thing.\n")
    commit(root)


@pytest.mark.parametrize(
    ("spoil", "arguments", "said"),
    [
        (write_stray_file, [], "the tree has changes that are not committed: src/reasonry/stray.py"),
        (name_the_placeholder, [], "docs/README.md still says OWNER/reasonry"),
        (change_the_version, [], "server.json is stale: run make plugins"),
        (change_the_version, [], "the first heading of CHANGELOG.md is not '## 9.9.9 (YYYY-MM-DD)'"),
        (add_an_entry, [], "CHANGELOG.md has unreleased entries"),
        (date_changelog, ["--tag", "v9.9.9"], f"the tag v9.9.9 is not v{VERSION}"),
    ],
)
def test_a_source_that_is_not_ready_is_refused(
    project: Path, tmp_path: Path, spoil: Callable[[Path], None], arguments: list[str], said: str
) -> None:
    root = clone(project, tmp_path)
    spoil(root)
    code, lines = release(root, *arguments)
    assert code == 1
    assert any(said in line for line in lines), lines
    assert not (root / "dist").exists()


def put(name: str, content: bytes = b"") -> Callable[[Files], object]:
    return lambda files: files.update({name: content})


def drop(name: str) -> Callable[[Files], object]:
    return lambda files: files.pop(name)


def replace(name: str, old: bytes, new: bytes) -> Callable[[Files], object]:
    def spoil(files: Files) -> None:
        assert old in files[name]
        files[name] = files[name].replace(old, new)

    return spoil


SKILL = "reasonry/surfaces/setup/skills/think-it-through/SKILL.md"
METADATA = f"{INFO}/METADATA"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (put("tests/test_it.py"), "tests/test_it.py should not be there"),
        (put("reasonry/stray.pth"), "reasonry/stray.pth should not be there"),
        (put("reasonry/__pycache__/a.pyc"), "reasonry/__pycache__/a.pyc should not be there"),
        (drop("reasonry/py.typed"), "reasonry/py.typed is missing"),
        (drop(SKILL), f"{SKILL} is missing"),
        (drop(f"{INFO}/licenses/LICENSE"), f"{INFO}/licenses/LICENSE is missing"),
        (drop("reasonry/surfaces/cli/__init__.py"), "which is not in the wheel"),
        (
            put(f"{INFO}/entry_points.txt", b"[console_scripts]\nother = reasonry:main\n"),
            "commands: {'other'",
        ),
        (replace(METADATA, b"License-File: LICENSE\n", b""), "licence files:"),
        (replace(METADATA, b"Version: 0.1.0", b"Version: 0.2.0"), "metadata of reasonry 0.2.0"),
        (replace(METADATA, b"text/markdown", b"text/plain"), "the description is not the README"),
        (replace(METADATA, b"Requires-Python: >=3.11", b"Requires-Python: three"), "metadata: "),
        (
            replace(METADATA, b"](https://github.com/", b"](github.com/"),
            "which leads nowhere on a package index",
        ),
        (
            replace(METADATA, b"<!-- mcp-name: ", b"<!-- name: "),
            "the description has no line <!-- mcp-name",
        ),
        (
            put("reasonry/py.typed", str(Path.home()).encode() + b"/a"),
            "py.typed holds a path of this machine",
        ),
        (
            replace("reasonry/surfaces/cli/__init__.py", b"def main(", b"def other("),
            "it does not start",
        ),
    ],
)
def test_a_wheel_that_is_not_whole_is_refused(
    built: Path,
    artefacts: ModuleType,
    expected: Any,
    tmp_path: Path,
    spoil: Callable[[Files], object],
    said: str,
) -> None:
    files = contents(wheel_of(built))
    spoil(files)
    with zipfile.ZipFile(wheel_of(tmp_path), "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    problems = artefacts.check_wheel(wheel_of(tmp_path), expected)
    assert any(said in problem for problem in problems), problems


MORE_IN_A_SOURCE_DISTRIBUTION: list[tuple[dict[str, Any], str]] = [
    (
        {"name": f"reasonry-{VERSION}/tests/test_it.py"},
        f"reasonry-{VERSION}/tests/test_it.py should not be there",
    ),
    ({"name": "../out.py"}, "../out.py should not be there"),
    ({"name": "link", "type": tarfile.SYMTYPE, "linkname": "/etc"}, "link is neither a file nor a folder"),
]


def test_a_source_distribution_with_more_in_it_is_refused(
    built: Path, artefacts: ModuleType, expected: Any, tmp_path: Path
) -> None:
    with tarfile.open(sdist_of(built)) as old, tarfile.open(sdist_of(tmp_path), "w:gz") as new:
        for member in old.getmembers():
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
        for described, _ in MORE_IN_A_SOURCE_DISTRIBUTION:
            member = tarfile.TarInfo()
            for name, value in described.items():
                setattr(member, name, value)
            new.addfile(member, io.BytesIO())
    problems = artefacts.check_sdist(sdist_of(tmp_path), expected)
    assert sorted(problems) == sorted(said for _, said in MORE_IN_A_SOURCE_DISTRIBUTION)


def test_artefacts_of_other_versions_beside_it_are_refused(
    project: Path, built: Path, tmp_path: Path
) -> None:
    for path in (wheel_of(built), sdist_of(built)):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "reasonry-0.0.1.tar.gz").write_bytes(b"")
    assert release(project, "--check", str(tmp_path)) == (
        1,
        ["release: reasonry-0.0.1.tar.gz should not be there"],
    )
    sdist_of(tmp_path).unlink()
    assert f"release: there is no reasonry-{VERSION}.tar.gz" in release(project, "--check", str(tmp_path))[1]


def test_a_licence_of_others_in_the_package_has_to_be_named(project: Path, tmp_path: Path) -> None:
    """A licence file beside somebody else's code is looked for in what is built."""
    root = clone(project, tmp_path)
    (root / "src" / "reasonry" / "LICENSE.other").write_text("Of somebody else.\n", "utf-8")
    commit(root)
    code, said = release(root)
    assert code == 1
    assert any(f"{INFO}/licenses/src/reasonry/LICENSE.other is missing" in line for line in said)


@pytest.mark.skipif(sys.platform == "win32", reason="takes a link to git")
def test_without_uv_it_says_so(project: Path, tmp_path: Path) -> None:
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    environ = {name: value for name, value in os.environ.items() if name != "UV"} | {"PATH": str(tmp_path)}
    command = [sys.executable, str(project / "release"), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=environ)
    assert (done.returncode, done.stderr) == (1, "release: uv is not there: pip install uv\n")
