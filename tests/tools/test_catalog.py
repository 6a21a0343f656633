"""The catalog: Python callables as tools, and tools loaded from a file."""

import asyncio
import dataclasses
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from reasonry.blocks.toolcard import ToolCard
from reasonry.core.options import read_options
from reasonry.errors import ToolError, UsageError
from reasonry.strategies.react import REACT
from reasonry.tools.catalog import Catalog, load_tools
from reasonry.tools.python import PythonTool
from reasonry.tools.results import fit_result, json_data

pytestmark = pytest.mark.anyio


def search(query: str, limit: int = 5, sort: Literal["date", "rank"] = "rank") -> list[str]:
    """Find pages.

    Long talk that a model need not read.

    Args:
        query: Words to look for.
        limit (int): At most so many.

    Returns:
        Titles.
    """
    return [f"{query} {sort}"] * limit


async def later(text: str) -> str:
    """Come back later."""
    await asyncio.sleep(0)
    return text.upper()


class Counter:
    """Counts."""

    name = "count"

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, by: Annotated[int, msgspec.Meta(ge=1)] = 1) -> int:
        self.count += by
        return self.count

    def explode(self) -> None:
        raise ValueError("no\nsuch thing")


class Echo:
    """A tool of the port."""

    name, description, parameters = "echo", "Says it again.", {"type": "object"}

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        return dict(arguments)


def test_a_signature_becomes_a_card() -> None:
    card = Catalog([search]).cards()[0]
    assert card == ToolCard(
        "search",
        "Find pages.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words to look for."},
                "limit": {"type": "integer", "description": "At most so many.", "default": 5},
                "sort": {"enum": ["date", "rank"], "default": "rank"},
            },
            "required": ["query"],
        },
    )


def test_cards_go_into_a_strategys_options_as_they_are() -> None:
    cards = Catalog([search, later]).cards()
    assert read_options(REACT, {"tools": cards}).tools == cards  # type: ignore[attr-defined]
    assert msgspec.convert(msgspec.to_builtins(cards), tuple[ToolCard, ...]) == cards


async def test_plain_and_asynchronous_callables_methods_and_tools_are_called() -> None:
    counter = Counter()
    catalog = Catalog([search, later, PythonTool(counter), Echo()])
    assert await catalog.call("search", {"query": "cats", "limit": 2}) == ["cats rank", "cats rank"]
    assert await catalog.call("later", {"text": "x"}) == "X"
    assert [await catalog.call("count", {}), await catalog.call("count", {"by": 4})] == [1, 5]
    assert await catalog.call("echo", {"a": 1}) == {"a": 1}


async def test_numbers_written_as_text_are_taken() -> None:
    assert await PythonTool(search).call({"query": "cats", "limit": "1"}) == ["cats rank"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "missing required field `query`"),
        ({"query": 5}, "Expected `str`, got `int` - at `$.query`"),
        ({"query": "x", "limit": "many"}, "`$.limit`"),
        ({"query": "x", "words": 1}, "has no argument 'words'; its arguments: query, limit, sort"),
        ({"query": "x", "sort": "size"}, "Invalid enum value 'size'"),
    ],
)
async def test_arguments_that_do_not_fit_are_an_error_for_the_model(
    arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ToolError) as error:
        await PythonTool(search).call(arguments)
    assert reason in error.value.message


async def test_an_exception_becomes_a_tool_error_with_its_message() -> None:
    with pytest.raises(ToolError, match="explode failed: ValueError: no\nsuch thing"):
        await PythonTool(Counter().explode).call({})


async def test_a_tool_that_exits_does_not_end_the_run() -> None:
    def leave() -> None:
        sys.exit(3)

    with pytest.raises(ToolError, match="SystemExit"):
        await PythonTool(leave).call({})


async def test_calls_of_plain_functions_run_side_by_side() -> None:
    together = threading.Barrier(8)

    def meet() -> None:
        together.wait()

    await asyncio.gather(*(PythonTool(meet).call({}) for _ in range(8)))


def test_a_tool_that_hangs_for_ever_does_not_hold_up_the_end_of_the_process() -> None:
    code = (
        "import asyncio, threading\n"
        "from reasonry.tools.python import PythonTool\n"
        "def hang(): threading.Event().wait()\n"
        "async def main():\n"
        "    try: await asyncio.wait_for(PythonTool(hang).call({}), 0.05)\n"
        "    except TimeoutError: print('left')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "left"


async def test_a_result_of_ten_megabytes_is_cut_with_a_mark() -> None:
    def flood() -> str:
        return "é" * 5_000_000

    value = await PythonTool(flood).call({})
    assert len(value.encode()) < 64 * 1024 + 60
    assert value.endswith("… (cut: 10000000 bytes in all)")


def test_any_result_becomes_json_data() -> None:
    @dataclasses.dataclass
    class Point:
        x: float

    holding_itself: list[Any] = []
    holding_itself.append(holding_itself)
    odd = {
        1: (1, 2),
        None: [Point(1.5)],
        "n": float("nan"),
        "big": 10**30,
        "s": "\ud800",
        "t": [date(2024, 3, 1) - date(2024, 1, 1), b"x"],
    }
    data = json_data(odd)
    texts = {"n": "nan", "big": str(10**30), "s": "\ufffd", "t": ["60 days, 0:00:00", "b'x'"]}
    assert data == {"1": [1, 2], "None": [{"x": 1.5}]} | texts
    assert msgspec.json.decode(msgspec.json.encode(data)) == data
    assert json_data(10**5000).startswith("0x")
    assert "object at" in json_data(object())
    with pytest.raises(ToolError, match="nested too deeply"):
        fit_result(holding_itself)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two tools are named 'search'"):
        Catalog([search, search])


async def test_an_unknown_tool_is_an_error_that_names_the_others() -> None:
    with pytest.raises(ToolError, match="there is no tool 'google'; the tools are: search, later"):
        await Catalog([search, later]).call("google", {})


@pytest.mark.parametrize("wrong", [5, "search", lambda x: x, eval])
def test_what_cannot_be_a_tool_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        Catalog([wrong])


def test_annotations_that_mean_nothing_are_no_obstacle() -> None:
    def odd(a: "Nowhere", b: 5, *rest: int, c: Path | None = None, **more: Any) -> None: ...  # type: ignore  # noqa: F821

    assert Catalog([odd]).cards()[0].parameters["required"] == ["a", "b"]


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "neighbour.py").write_text("FACTOR = 3\n")
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\n"
        "import dataclasses\n"
        "from neighbour import FACTOR\n"
        "@dataclasses.dataclass\n"
        "class Point:\n"
        "    x: int\n"
        "def triple(n: int) -> int:\n"
        "    'Three times as much.'\n"
        "    return n * FACTOR\n"
        "def length(point: Point) -> int: return point.x\n"
        "NUMBER = 7\n"
    )
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "wrong.py").write_text("def (\n")
    return str(tmp_path)


async def test_tools_are_loaded_from_a_file(script: str) -> None:
    tools = load_tools(f"{script}/mine.py:triple, length")
    assert [tool.name for tool in tools] == ["triple", "length"]
    assert await tools[0].call({"n": 2}) == 6
    assert await tools[1].call({"point": {"x": 4}}) == 4
    assert script not in sys.path


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("{}/mine.py", "tools are written FILE.py:NAME"),
        ("{}/mine.py:", "tools are written FILE.py:NAME"),
        ("triple", "tools are written FILE.py:NAME"),
        ("{}/none.py:triple", "tools file not found"),
        ("{}/mine.py:twice", "has no 'twice'; its functions: Point, triple, length"),
        ("{}/mine.py:NUMBER", "NUMBER in"),
        ("{}/broken.py:x", "ZeroDivisionError: division by zero"),
        ("{}/wrong.py:x", "SyntaxError"),
    ],
)
def test_what_cannot_be_loaded_is_named(script: str, spec: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        load_tools(spec.format(script))
    assert reason in error.value.message
    assert error.value.details["option"] == "tools"
