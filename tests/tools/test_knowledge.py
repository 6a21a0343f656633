"""Documents of the user: what is asked for is found, with where it stands, and bad files are refused."""

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.errors import TooLargeError, ToolError, UsageError
from reasonry.system.plugins import install_hint
from reasonry.tools.knowledge import (
    MAX_FILE_BYTES,
    PASSAGE_CHARS,
    Library,
    Passage,
    passages_of,
    read_document,
)

HANDBOOK = """# Handbook

## Leave

Employees have thirty days of paid vacation each year.
Unused days expire in March.

## Travel

Trains are booked in second class. Flights under four hours are not reimbursed.

## Équipement

Chaque employé reçoit un ordinateur portable.
"""


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    path = tmp_path / "handbook.md"
    path.write_text(
        HANDBOOK + "\n\n" + "\n\n".join(f"Filler paragraph {n} about nothing. " * 20 for n in range(8))
    )
    return path


def pdf(texts: list[str]) -> bytes:
    """Write a small PDF with one line of text on each page."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(texts)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(texts)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(texts):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    start = len(out)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return (
        out + f"{head}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF".encode()
    )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("How many vacation days do I have?", "thirty days"),
        ("flight reimbursement", "not reimbursed"),
        ("BOOKING A TRAIN", "second class"),
        ("equipement employe", "ordinateur portable"),
    ],
)
def test_the_passage_that_fits_comes_first(handbook: Path, query: str, found: str) -> None:
    library = Library.open([handbook])
    best = library.passages(query, 3)[0]
    assert found in best.text
    assert best.source == handbook.name
    line = HANDBOOK.splitlines()[(best.line or 0) - 1]
    assert line == best.text.splitlines()[0]


def test_scores_fall_and_k_is_kept(handbook: Path) -> None:
    library = Library.open([handbook])
    found = library.passages("filler paragraph nothing", 5)
    assert len(found) == 5
    assert sorted((one.score for one in found), reverse=True) == [one.score for one in found]


def test_of_a_pdf_the_page_is_cited(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf(["The revenue grew by nine percent.", "The moon is not made of cheese."]))
    library = Library.open([path])
    best = library.passages("what is the moon made of")[0]
    assert (best.page, best.line, "cheese" in best.text) == (2, None, True)
    assert best.source == "report.pdf"
    assert best.document()["page"] == 2


def test_several_documents_are_searched_as_one(tmp_path: Path, handbook: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_bytes("\ufeffThe vacation house is at the lake.\r\nIt is blue.\r\n".encode())
    library = Library.open([handbook, other, handbook])
    assert library.description.endswith(f": {handbook.name}, other.txt.")
    assert library.passages("lake house")[0].text == "The vacation house is at the lake.\nIt is blue."
    assert {one.source for one in library.passages("vacation")} == {handbook.name, "other.txt"}


def test_no_path_of_the_machine_is_shown_and_files_of_one_name_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rules.md").write_text(f"Rule of {folder}: " + "no smoking in here. " * 20)
    paths = [tmp_path / "a" / "rules.md", tmp_path / "b" / "rules.md", "c/rules.md"]
    library = Library.open(paths)
    assert library.description.endswith(": a/rules.md, b/rules.md, c/rules.md.")
    begins = library.overview()["documents"][0]["begins"]
    assert begins.endswith((" no…", " smoking…", " in…", " here.…"))


@pytest.mark.parametrize("query", ["", "   ", "?!", "zyzzyva", '"', "NEAR(", "text : *", "a" * 100_000])
def test_a_query_that_finds_nothing_finds_nothing(handbook: Path, query: str) -> None:
    library = Library.open([handbook])
    assert library.passages(query) == []


@pytest.mark.parametrize(
    "query", ["vacation AND", "-vacation", "vacation*", "NOT vacation", "text:vacation", "^vacation"]
)
def test_no_word_of_a_query_is_an_operator(handbook: Path, query: str) -> None:
    library = Library.open([handbook])
    assert "vacation" in library.passages(query)[0].text


@given(st.text(max_size=80))
def test_any_query_is_answered(query: str) -> None:
    library = Library([Passage("s", "some words and an ä", line=1)])
    assert len(library.passages(query)) <= 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\x7fELF\x02\x01\x00\x00", "neither UTF-8 text nor a PDF"),
        (b"text with \x00 inside", "neither UTF-8 text nor a PDF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "neither UTF-8 text nor a PDF"),
        (b"latin-1: \xe9t\xe9", "neither UTF-8 text nor a PDF"),
        (b"%PDF-1.7 and then nothing", "cannot be read"),
        (b"%PDF-1.4\n" + os.urandom(2000), "cannot be read"),
    ],
)
def test_what_is_no_document_is_refused(tmp_path: Path, content: bytes, told: str) -> None:
    pytest.importorskip("pypdf")
    path = tmp_path / "file.bin"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=told) as caught:
        Library.open([path])
    assert caught.value.details["file"] == str(path)


def test_what_is_missing_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        Library.open([tmp_path / "nothing.txt"])
    with pytest.raises(UsageError, match="a directory, not a regular file"):
        Library.open([tmp_path])
    with pytest.raises(UsageError):
        Library.open(["nul\0l"])


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    began = time.process_time()
    with pytest.raises(TooLargeError) as caught:
        Library.open([path])
    assert (caught.value.code, caught.value.details["limit"]) == ("payload_too_large", MAX_FILE_BYTES)
    assert time.process_time() - began < 1


def test_a_pdf_without_pypdf_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pypdf", None)
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf(["x"]))
    with pytest.raises(UsageError, match=re.escape(install_hint("documents"))):
        list(read_document(path))


@given(st.lists(st.text(alphabet="ab \u2028", max_size=PASSAGE_CHARS * 2), max_size=30))
def test_passages_hold_every_word_and_are_short(lines: list[str]) -> None:
    passages = [text for _, text in passages_of("\n".join(lines))]
    assert all(0 < len(text) <= PASSAGE_CHARS + 1 for text in passages)
    assert "".join("".join(passages).split()) == "".join("".join(lines).split())


def test_one_endless_line_is_cut_in_linear_time() -> None:
    began = time.process_time()
    assert len(list(passages_of("x" * 8_000_000))) > 6_000
    assert time.process_time() - began < 2


@pytest.mark.anyio
async def test_the_tool_returns_passages(handbook: Path) -> None:
    tool = Library.open([handbook])
    found = await tool.call({"query": "vacation", "k": 1})
    assert [list(row) for row in found["passages"]] == [["source", "text", "score", "line"]]
    wrong: list[dict[str, Any]] = [{}, {"query": 3}, {"query": "x", "k": 0}, {"query": "x", "k": "all"}]
    for arguments in wrong:
        with pytest.raises(ToolError):
            await tool.call(arguments)
