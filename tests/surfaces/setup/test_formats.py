"""Edits in place: whatever the document, only the entry comes and goes, and what cannot be edited is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.surfaces.setup import json_text
from reasonry.surfaces.setup.formats import drop_entry, find_entry, open_format, put_entry
from reasonry.surfaces.setup.receipts import Edit

ENTRY = {"type": "stdio", "command": r"C:\Program Files\reasonry.exe", "args": ["mcp", "--store", "ü.db"]}
OTHER = {"command": "/elsewhere/reasonry", "args": ["mcp"]}
KEYS = ("mcpServers", "reasonry")
JSON, TOML, YAML = open_format("json"), open_format("toml"), open_format("yaml")

SPACES = st.text(" \t", max_size=3)
COMMENTS = st.sampled_from(['// of {mine}, "yes"', "/* a, b } */", "/* two\nlines */", "//", "/**/"])


@st.composite
def gaps(draw: st.DrawFn) -> str:
    """Return what may stand between two tokens."""
    parts: list[str] = []
    for _ in range(draw(st.integers(0, 2))):
        parts.append(draw(SPACES))
        if draw(st.booleans()):
            comment = draw(COMMENTS)
            parts.append(comment + ("\n" if comment.startswith("//") else ""))
        elif draw(st.booleans()):
            parts.append("\n")
    return "".join(parts)


NAMES = st.sampled_from(["mcpServers", "a", "ü", 'with "quotes"', "//", "", "{,}", "other"])
SCALARS = st.sampled_from(
    ["1", "-0.5e99", "true", "null", '"text // no comment"', '"\\\\"', '"}, \\"x"', "12345678901234567890"]
)


@st.composite
def objects(draw: st.DrawFn, depth: int = 0, *, servers: bool = False) -> str:
    """Return an object with comments, odd indentation and perhaps a trailing comma."""
    members: list[str] = []
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    for name in names:
        is_object = depth < 2 and (name == "mcpServers" or draw(st.booleans()))
        value = draw(objects(depth + 1)) if is_object else draw(SCALARS)
        if not is_object and draw(st.integers(0, 4)) == 0:
            value = f"[{value},{draw(gaps())}{value}{draw(st.sampled_from(['', ',']))}]"
        members.append(f"{draw(gaps())}{json.dumps(name)}{draw(gaps())}:{draw(gaps())}{value}{draw(gaps())}")
    comma = draw(st.sampled_from(["", ","])) if members else ""
    return "{" + ",".join(members) + comma + draw(gaps()) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Return a document such as people keep; or one with nothing but comments in it."""
    mark = draw(st.sampled_from(["", "\ufeff"]))
    body = draw(objects()) if draw(st.integers(0, 9)) else ""
    text = mark + draw(gaps()) + body + draw(gaps())
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(documents())
def test_an_entry_is_all_that_comes_into_a_json_document(text: str) -> None:
    before = JSON.read(text)
    if not isinstance(before.get("mcpServers", {}), dict):
        with pytest.raises(ValueError, match="no object"):
            put_entry(JSON, text, KEYS, ENTRY)
        return
    after = put_entry(JSON, text, KEYS, ENTRY)
    found = JSON.read(after)
    assert find_entry(found, KEYS) == ENTRY
    del found["mcpServers"]["reasonry"]
    assert found == {**before, "mcpServers": before.get("mcpServers", {})}
    # Every character that was there is there, in its order: an edit adds, and takes away spaces at most.
    assert "".join(text.split()) == "".join(after.split()) or is_within(
        "".join(text.split()), "".join(after.split())
    )
    assert Edit.between(text, after).undone(after) == text
    assert ("\r\n" in text) == ("\r\n" in after) or "\n" not in text
    assert after.startswith("\ufeff") == text.startswith("\ufeff")


def is_within(short: str, long: str) -> bool:
    """Whether the characters of a text stand in another, in their order."""
    rest = iter(long)
    return all(character in rest for character in short)


@given(documents())
def test_an_entry_is_replaced_and_taken_out_without_a_trace_in_the_data(text: str) -> None:
    before = JSON.read(text)
    if not isinstance(before.get("mcpServers", {}), dict):
        return
    after = put_entry(JSON, put_entry(JSON, text, KEYS, OTHER), KEYS, ENTRY)
    assert JSON.read(after) == JSON.read(put_entry(JSON, text, KEYS, ENTRY))
    created = 0 if "mcpServers" in before else 1
    gone = drop_entry(JSON, after, KEYS, created)
    assert JSON.read(gone) == before
    # Comments stay, too.
    assert gone.count("//") + gone.count("/*") == text.count("//") + text.count("/*")


@given(documents(), st.integers(0, 10_000), st.text("{}[],:\"'/*\\ \n#\ufeffa1", max_size=4))
def test_a_damaged_document_is_refused_or_edited_rightly(text: str, place: int, damage: str) -> None:
    place %= len(text) + 1
    text = text[:place] + damage + text[place + 1 :]
    try:
        after = put_entry(JSON, text, KEYS, ENTRY)
    except ValueError:
        return
    assert find_entry(JSON.read(after), KEYS) == ENTRY


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "1",
        '"x"',
        "{,}",
        '{"a": 1,,}',
        '{"a" 1}',
        '{"mcpServers": null}',
        '{"mcpServers": []}',
        "{",
        "}{",
        "[" * 100_000,
    ],
)
def test_what_is_no_object_of_servers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        put_entry(JSON, text, KEYS, ENTRY)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}\n", '{\n  "mcpServers": {\n    "reasonry": {\n      "command": "r"\n    }\n  }\n}\n'),
        ('{"mcpServers":{}}', '{"mcpServers":{"reasonry": {"command": "r"}}}'),
        ('{"a":1,"b":{}}', '{"a":1,"b":{},"mcpServers":{"reasonry":{"command":"r"}}}'),
        (
            '{\n\t"mcpServers": {\n\t\t"a": {} // one\n\t}\n}',
            '{\n\t"mcpServers": {\n\t\t"a": {}, // one\n\t\t"reasonry": {\n\t\t\t"command": "r"\n\t\t}\n\t}\n}',
        ),
        (
            '{\n   "mcpServers": {\n      "a": {},\n   },\n}\n',
            '{\n   "mcpServers": {\n      "a": {},\n      "reasonry": {\n         "command": "r"\n      },\n   },\n}\n',
        ),
    ],
)
def test_an_entry_is_written_as_its_neighbours_are(before: str, after: str) -> None:
    assert put_entry(JSON, before, KEYS, {"command": "r"}) == after


def test_one_of_two_members_of_a_name_counts_and_is_the_last() -> None:
    text = '{"mcpServers": {"x": {}}, "mcpServers": {"y": {}}}'
    after = put_entry(JSON, text, KEYS, ENTRY)
    assert list(json.loads(after)["mcpServers"]) == ["y", "reasonry"]
    assert '"x": {}' in after


def test_a_long_file_of_other_things_is_edited_in_no_time() -> None:
    text = json.dumps(
        {"history": [{"prompt": "x" * 50, "n": n} for n in range(10_000)], "mcpServers": {}}, indent=2
    )
    after = put_entry(JSON, text, KEYS, ENTRY)
    assert Edit.between(text, after).undone(after) == text


TOML_KEYS = ("mcp_servers", "reasonry")
TOMLS = [
    "",
    'model = "gpt-6"',
    'model = "gpt-6"\n# the end\n',
    '[mcp_servers.a]\ncommand = "x"\n\n[mcp_servers.a.env]\nKEY = "v"\n',
    "[mcp_servers]\n",
    "[mcp_servers] # none\r\n\r\n[tui]\r\nx = 1\r\n",
    'mcp_servers.a.command = "x"\n',
    "list = [\n  [1],\n  [2]\n]\n\n\n",
    "\ufeffa = 1\n",
]


@pytest.mark.parametrize("text", TOMLS)
def test_a_table_comes_into_toml_and_goes(text: str) -> None:
    entry = {"command": r"C:\r.exe", "args": ["mcp", 'say "x"', "tab\t\x7f"]}
    after = put_entry(TOML, text, TOML_KEYS, entry)
    assert after.startswith(text)
    assert find_entry(TOML.read(after), TOML_KEYS) == entry
    assert put_entry(TOML, put_entry(TOML, text, TOML_KEYS, OTHER), TOML_KEYS, entry) == after
    gone = drop_entry(TOML, after, TOML_KEYS, 0)
    assert gone.rstrip() == text.rstrip()


def test_text_that_looks_like_the_table_is_none() -> None:
    text = 'text = """\n[mcp_servers.reasonry]\n"""\n'
    after = put_entry(TOML, text, TOML_KEYS, OTHER)
    assert after.startswith(text)
    with pytest.raises(ValueError, match="cannot be edited safely"):
        drop_entry(TOML, after, TOML_KEYS, 0)


def test_what_stands_around_a_table_stays() -> None:
    text = '# one\n[mcp_servers.reasonry]\ncommand="old"\n\n[mcp_servers.reasonry.env]\nA="b"\n\n# two\n[x]\ny = 1\n'
    assert drop_entry(TOML, text, TOML_KEYS, 0) == "# one\n\n# two\n[x]\ny = 1\n"
    after = put_entry(TOML, text, TOML_KEYS, OTHER)
    assert after.startswith("# one\n[mcp_servers.reasonry]\n")
    assert after.endswith("\n\n# two\n[x]\ny = 1\n")


@pytest.mark.parametrize(
    "text", ["mcp_servers = {}\n", 'mcp_servers = { a = { command = "x" } }\n', "x = \n", "[a]\n[a]\n"]
)
def test_toml_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        put_entry(TOML, text, TOML_KEYS, OTHER)


YAML_KEYS = ("extensions", "reasonry")
YAMLS = [
    "",
    "# nothing yet\n",
    "GOOSE_MODEL: gpt-6\n",
    "GOOSE_MODEL: gpt-6",
    "extensions:\n  a:\n    cmd: x\n    args:\n    - b\nGOOSE_MODEL: y\n",
    "extensions:\n    a: {cmd: x}   # note\n\n# the end\nb: 1\n",
    "extensions: {}\nb: 1\n",
    "extensions: {a: {b: c}}\n",
    "extensions:\nb: 1\n",
    "extensions:\n  a:\n    text: |\n      one\n      two\nb: 1",
    "a: 1\r\nextensions:\r\n  b: {x: 1}\r\n",
    "{}",
    "{a: 1,}\n",
    "---\na: &x 1\nb: *x\n",
]


@pytest.mark.parametrize("text", YAMLS)
def test_an_entry_comes_into_yaml_and_goes(text: str) -> None:
    entry = {"name": "reasonry", "cmd": "/opt/r: #1", "args": ["mcp"], "enabled": True, "timeout": 300}
    before = YAML.read(text)
    after = put_entry(YAML, text, YAML_KEYS, entry)
    assert find_entry(YAML.read(after), YAML_KEYS) == entry
    assert Edit.between(text, after).undone(after) == text
    assert Edit.between(text, after).old == ""
    gone = drop_entry(YAML, after, YAML_KEYS, 0 if before.get("extensions") is not None else 1)
    assert {key: value for key, value in YAML.read(gone).items() if value} == {
        key: value for key, value in before.items() if value
    }


@pytest.mark.parametrize(
    "text", ["- a\n", "a: [\n", "extensions: 5\n", "a: 1\n---\nb: 2\n", "!!python/object:os.system x\n"]
)
def test_yaml_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        put_entry(YAML, text, YAML_KEYS, OTHER)


@given(st.text("ab\n", max_size=8), st.text("ab\n", max_size=8))
def test_an_edit_is_undone_whatever_it_was(before: str, after: str) -> None:
    edit = Edit.between(before, after)
    assert edit.undone(after) == before
    assert len(edit.new) <= len(after)


def test_line_ends_are_those_of_the_text() -> None:
    assert json_text.line_end("a\r\nb") == "\r\n"
    assert json_text.line_end("a\nb") == "\n"
