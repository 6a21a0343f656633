"""Edits in place: whatever the document, only the entry comes and goes, and what cannot be edited is refused."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.surfaces.setup.config_file import edit_text, find_entry, read_data

ENTRY = {"type": "stdio", "command": r"C:\Program Files\reasonry.exe", "args": ["mcp", "--store", "ü.db"]}
OTHER = {"command": "/elsewhere/reasonry", "args": ["mcp"]}
KEYS = ("mcpServers", "reasonry")

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
    before = read_data("json", text)
    if not isinstance(before.get("mcpServers", {}), dict):
        with pytest.raises(ValueError, match="no mapping"):
            edit_text("json", text, KEYS, ENTRY)
        return
    after = edit_text("json", text, KEYS, ENTRY)
    found = read_data("json", after)
    assert find_entry(found, KEYS) == ENTRY
    del found["mcpServers"]["reasonry"]
    assert found == {**before, "mcpServers": before.get("mcpServers", {})}
    # Every character that was there is there, in its order: an edit adds, and takes away spaces at most.
    rest = iter("".join(after.split()))
    assert all(character in rest for character in "".join(text.split()))
    assert ("\r\n" in text) == ("\r\n" in after) or "\n" not in text
    assert after.startswith("\ufeff") == text.startswith("\ufeff")


@given(documents())
def test_an_entry_is_replaced_and_taken_out_without_a_trace_in_the_data(text: str) -> None:
    before = read_data("json", text)
    if not isinstance(before.get("mcpServers", {}), dict):
        return
    after = edit_text("json", edit_text("json", text, KEYS, OTHER), KEYS, ENTRY)
    assert read_data("json", after) == read_data("json", edit_text("json", text, KEYS, ENTRY))
    gone = edit_text("json", after, KEYS, None)
    if not before.get("mcpServers", True):
        del before["mcpServers"]  # An object that holds nothing else goes with the entry.
    else:
        # Comments stay, too.
        assert gone.count("//") + gone.count("/*") == text.count("//") + text.count("/*")
    assert read_data("json", gone) == before


@given(documents(), st.integers(0, 10_000), st.text("{}[],:\"'/*\\ \n#\ufeffa1", max_size=4))
def test_a_damaged_document_is_refused_or_edited_rightly(text: str, place: int, damage: str) -> None:
    place %= len(text) + 1
    text = text[:place] + damage + text[place + 1 :]
    try:
        after = edit_text("json", text, KEYS, ENTRY)
    except ValueError:
        return
    assert find_entry(read_data("json", after), KEYS) == ENTRY


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}\n", '{\n  "mcpServers": {\n    "reasonry": {\n      "command": "r"\n    }\n  }\n}\n'),
        (
            '{"a": 1, "mcpServers": {"b": {}}}',
            '{"a": 1, "mcpServers": {"reasonry": {\n    "command": "r"\n  },"b": {}}}',
        ),
        (
            '{\n\t"mcpServers": {\n\t\t"a": {} // one\n\t}\n}',
            '{\n\t"mcpServers": {\n\t\t"reasonry": {\n\t\t\t"command": "r"\n\t\t},\n\t\t"a": {} // one\n\t}\n}',
        ),
    ],
)
def test_an_entry_is_written_as_its_neighbours_are(before: str, after: str) -> None:
    assert edit_text("json", before, KEYS, {"command": "r"}) == after


def test_one_of_two_members_of_a_name_counts_and_is_the_last() -> None:
    text = '{"mcpServers": {"x": {}}, "mcpServers": {"y": {}}}'
    after = edit_text("json", text, KEYS, ENTRY)
    assert set(json.loads(after)["mcpServers"]) == {"y", "reasonry"}
    assert '"x": {}' in after


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
    "mcp_servers = {}\n",
    'mcp_servers = { a = { command = "x" } }\n',
    'text = """\n[mcp_servers.reasonry]\n"""\n',
    '[mcp_servers.a]\ncommand = "x"\n[x]\ny = 1\n[mcp_servers.b]\ncommand = "y"\n[z]\n',
]


@pytest.mark.parametrize("text", TOMLS)
def test_a_table_comes_into_toml_and_goes(text: str) -> None:
    entry = {"command": r"C:\r.exe", "args": ["mcp", 'say "x"', "tab\t\x7f"]}
    after = edit_text("toml", text, TOML_KEYS, entry)
    assert find_entry(read_data("toml", after), TOML_KEYS) == entry
    assert edit_text("toml", edit_text("toml", text, TOML_KEYS, OTHER), TOML_KEYS, entry) == after
    gone = edit_text("toml", after, TOML_KEYS, None)
    lines = [line for line in text.splitlines() if line and not line.startswith("mcp_servers = {}")]
    assert [line for line in gone.splitlines() if line] == [
        line for line in lines if not line.startswith("[mcp_servers]")
    ]


def test_what_stands_around_a_table_stays() -> None:
    text = '# one\n[mcp_servers.reasonry]\ncommand="old"\n\n[mcp_servers.reasonry.env]\nA="b"\n\n# two\n[x]\ny = 1\n'
    assert edit_text("toml", text, TOML_KEYS, None) == "# one\n# two\n[x]\ny = 1\n"
    after = edit_text("toml", text, TOML_KEYS, OTHER)
    assert after.startswith("# one\n# two\n[x]\ny = 1\n")


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
    "# mine\n---\na: 1\nlist:\n  - a\n  - 'b'\n",
    "extensions:\n  # first\n  a:\n    b: 1  # why\n# last\nc: 0x10\n",
]


@pytest.mark.parametrize("text", YAMLS)
def test_an_entry_comes_into_yaml_and_goes(text: str) -> None:
    entry = {"name": "reasonry", "cmd": "/opt/r: #1", "args": ["mcp"], "enabled": True, "timeout": 300}
    before = read_data("yaml", text)
    after = edit_text("yaml", text, YAML_KEYS, entry)
    assert find_entry(read_data("yaml", after), YAML_KEYS) == entry
    assert comments(after) == comments(text)
    gone = edit_text("yaml", after, YAML_KEYS, None)
    assert comments(gone) == comments(text)
    assert read_data("yaml", gone) == {key: value for key, value in before.items() if value}


def comments(text: str) -> list[str]:
    """Return the comments of a text, but for what a value holds."""
    return re.findall(r"(?<!: )#[^\n\r1]*$", text, re.MULTILINE)


def test_yaml_is_written_as_the_rest_is() -> None:
    text = "extensions:\n    a: {cmd: x}\nlist:\n      - a\n"
    after = edit_text("yaml", text, YAML_KEYS, {"cmd": "r", "args": ["mcp"]})
    assert after.startswith("extensions:\n    reasonry:\n        cmd: r\n        args:\n")
    assert after.endswith("    a: {cmd: x}\nlist:\n      - a\n")


REFUSED = {
    "json": ("[]", "1", '"x"', '{"a": 1,,}', '{"a" 1}', '{"mcpServers": []}', "{", "}{", "[" * 100_000),
    "toml": ("x = \n", "[a]\n[a]\n", "mcp_servers = 1\n"),
    "yaml": ("- a\n", "a: [\n", "extensions: 5\n", "a: 1\n---\nb: 2\n", "!!python/object:os.system x\n"),
}


@pytest.mark.parametrize(
    ("form", "text"),
    [(form, text) for form, texts in REFUSED.items() for text in texts],
    ids=lambda of: of[:9],
)
def test_what_cannot_be_edited_is_refused(form: str, text: str) -> None:
    keys = {"json": KEYS, "toml": TOML_KEYS, "yaml": YAML_KEYS}[form]
    with pytest.raises(ValueError, match=r"\w"):
        edit_text(form, text, keys, OTHER)
