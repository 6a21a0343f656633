"""Exports of hostile thoughts: read by a real Markdown parser, nothing in them is live; JSON loses nothing."""

import json
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reasonry.guided.export import markdown
from reasonry.surfaces.cli.output import write_text
from reasonry.text import escape_json, escape_unseen

from .desk import desk

PARSERS = [MarkdownIt("commonmark", {"html": True}), MarkdownIt("js-default", {"html": True})]
LIVE = {"image", "link_open", "html_block", "html_inline"}
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")

WORDS = r"""
![x](http://evil.example/p.png) ![x][a] ![a] [a] [a][b] ](x) ]( [a](javascript:alert(1)) [a](data:text/html,x) [a](/x)
<script>alert(1)</script> <javascript:alert(1)> <http://evil.example> <a@b.example> <!-- --> <![CDATA[ </p> < >
``` ```` ~~~ ~~~~ ```py ` `` \ \\ \<b> \[a](x) &lt; &#91; &#x5b;a](x) === ---
http://evil.example javascript:alert(1) data:text/html,x //evil.example http:/\/evil.example a b_c *d*
"""
LINES = """[a]: javascript:alert(1)
[a]: <x>
[a](<javascript:x> 'y')
<img src=x onerror=alert(1)>
<?x ?>
<!DOCTYPE x>
~~~ `
``` `
| a |"""
BLANKS = ("<b\nc>", "\n", "\n\n", "\r\n", "\r", "\t", "    ", " ", "> ", "- ", "1. ", "* ", "# ", "\x1b[31m")
ACTING = "\u202e\u2066\u2069\u200b\u200d\ufeff\u2028\x85\x0b\x0c\x00\u061c\u00ad\U000e0041\U000e0100"
ATTACKS = [*WORDS.split(), *LINES.splitlines(), *BLANKS, *ACTING]
hostile = st.one_of(st.lists(st.sampled_from(ATTACKS), max_size=12).map("".join), st.text(max_size=40))
lined = st.lists(st.sampled_from(ATTACKS), max_size=12).map("\n".join)


def thought(text: str, **more: Any) -> dict[str, Any]:
    return {"seq": 1, "thought_number": 1, "thought": text, "next_thought_needed": True, **more}


def session(*thoughts: dict[str, Any], text: str = "x") -> dict[str, Any]:
    at = "2026-01-01T00:00:00.000Z"
    whole = {"session_id": text, "strategy": text, "purpose": text, "created_at": at, "used_at": at}
    return {**whole, "thoughts": list(thoughts)}


def everywhere(text: str) -> dict[str, Any]:
    """Return a session that has a text wherever a text can be."""
    first = thought(text, stage=text, data={text: text, "nested": {text: [text]}})
    branch = {"branch_id": text, "branch_from_thought": 1, "branch_from_seq": 1, "merge_branch": text}
    return session(first, thought(text, seq=2, **branch), text=text)


def every(top: Iterable[Token]) -> Iterator[Token]:
    for token in top:
        yield token
        yield from token.children or ()


def assert_nothing_unseen(page: str) -> None:
    assert [char for char in page if char != "\n" and unicodedata.category(char) in UNSEEN] == []


@given(hostile | lined)
@example("\\<script>alert(1)</script>")
@example("~~~ `\n```\n~~~\n<script>\n```")
@example("- ~~~\n```\n~~~\n<img src=x>\n```")
@example("    ~~~\n```\n~~~\n<img src=x>\n```")
@example("```\n````\n```\n<img src=x>")
def test_a_markdown_export_holds_no_image_no_link_no_tag_and_nothing_unseen(text: str) -> None:
    page = markdown(everywhere(text))
    assert_nothing_unseen(page)
    for parser in PARSERS:
        top = parser.parse(page)
        assert [token for token in every(top) if token.type in LIVE] == []
        assert sum(token.type == "heading_open" and token.level == 0 for token in top) >= 4


def shown(page: str) -> str:
    """Return what a reader of the one thought sees."""
    quote = page.partition("### Thought")[2].partition("\n")[2]
    inline = (token.children or () for token in PARSERS[0].parse(quote) if token.type == "inline")
    return "".join(" " if part.type == "softbreak" else part.content for parts in inline for part in parts)


@given(st.text(alphabet=st.characters(exclude_characters="*_\n\r\t\x0b\x0c\x85"), max_size=60))
@example("a[i] < b & c `x` \\frac{1}{2} ~ http://e.example/x")
def test_a_line_of_a_thought_is_shown_as_it_was_written(text: str) -> None:
    page = markdown(session(thought(f"x{text}")))
    assert " ".join(shown(page).split()) == " ".join(f"x{escape_unseen(text)}".split())


@given(
    st.sampled_from(["```", "~~~", "````"]),
    st.lists(st.sampled_from(["<b>", "[a](x)", "``", "`", "  y", "&lt;", "\\"])),
)
def test_fenced_code_is_shown_as_it_was_written(fence: str, code: list[str]) -> None:
    page = markdown(session(thought("\n".join(["Run:", f"{fence}python", *code, fence, "Done."]))))
    (block,) = [token for token in PARSERS[0].parse(page) if token.type == "fence"]
    assert (block.info, block.content) == ("python", "".join(f"{line}\n" for line in code))


# -- JSON


@given(
    st.recursive(
        hostile, lambda inner: st.dictionaries(hostile, inner, max_size=3) | st.lists(inner, max_size=3)
    )
)
def test_json_without_unseen_characters_means_the_same(value: Any) -> None:
    for indent in (None, 2):
        written = escape_json(json.dumps(value, ensure_ascii=False, indent=indent))
        assert_nothing_unseen(written)
        assert json.loads(written) == value


def test_all_that_acts_unseen_is_spelled_out() -> None:
    chars = [chr(point) for point in range(0x110000)]
    acting = [char for char in chars if unicodedata.category(char) in UNSEEN and char not in "\n\t"]
    assert all(escape_unseen(char) != char for char in acting)
    assert escape_unseen("a\u202eb\U000e0041 é\U0001f600\n\t") == "a\\u202eb\\U000e0041 é\U0001f600\n\t"
    assert all(escape_unseen(char).isascii() for char in acting)


@pytest.mark.anyio
async def test_a_json_file_is_imported_again_exactly(tmp_path: Path) -> None:
    text = "".join(ATTACKS)
    async with desk("memory", tmp_path) as at, desk("memory", tmp_path) as other:
        sid = (await at.think(1, text, strategy="react", data={"note": text}))["session_id"]
        whole = await at.sessions.export({"session_id": sid})
        path = tmp_path / "session.json"
        write_text(path, whole)
        written = path.read_bytes().decode()
        assert_nothing_unseen(written)
        await other.sessions.import_(path.read_bytes())
        assert await other.sessions.export({"session_id": sid}) == whole
        assert whole["thoughts"][0]["thought"] == text
