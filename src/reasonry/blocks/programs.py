"""Programs in replies: the code of an answer, and its output in the sandbox."""

import ast
import re
from collections.abc import Generator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from textwrap import dedent
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.bodies import EffectFailed, Request, request
from ..core.effects import Ask, CallTool
from ..core.events import Failed, ToolReturned
from ..core.readings import Unreadable
from ..reading.form import read_form
from ..text import lazy_pattern

SANDBOX_TOOL: Final = "py_executor"
WHERE_IT_RUNS: Final = "Python's standard library, no files, no network."
"""The description of the sandbox for the author of a program."""
UNAVAILABLE: Final = "sandbox_unavailable"
"""The failure code of a call that needs a sandbox if no sandbox is available."""
_FENCED: Final = lazy_pattern(
    r"^[ \t]*```[ \t]*(?:(?:python3?|py|repl)?[ \t]*\n(.*?)|[^\n]*\n.*?)(?:^[ \t]*```|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_BLOCK: Final = lazy_pattern(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_CODE: Final = lazy_pattern(r"(?:@|(?:async |export )?(?:def|class|function|fn|func) )|[^\n]*\n")
"""Matches the beginning of a definition, or of a text with several lines."""
MAX_ERROR: Final = 1_500
"""How many characters at the end of a traceback a model sees."""
_NOT_RUN: Final = "it did not run"


def program_in(text: str) -> str | None:
    """Return the program in a text: the longest fenced program, or the whole text. If there is none, return None."""
    fenced = map(dedent, _FENCED.findall(text))
    if blocks := [block for block in fenced if block.strip() and _parse(block) is not None]:
        return max(blocks, key=len).strip()
    tree = _parse(text)
    nodes = () if tree is None else (node for node in ast.walk(tree) if not isinstance(node, ast.Expr))
    return text.strip() if any(isinstance(node, (ast.stmt, ast.Call)) for node in nodes) else None


@lru_cache(maxsize=64)
def code_in(text: str) -> str | None:
    """Return the code in a text, without the fence and other text. If the text is not mostly code, return None."""
    blocks = list(_BLOCK.finditer(text))
    if len(blocks) == 1:
        code = blocks[0][1]
        return code.strip("\n") if len(text) - len(blocks[0][0]) <= len(code) else None
    return program_in(text) if not blocks and _CODE.match(text) else None


@lru_cache(maxsize=64)
def code_key(text: str, *, is_code: bool = False) -> str:
    """Return a key that is equal for programs with equal syntax. For one line of prose, return "".

    Args:
        is_code: Whether a text of one line counts as code too.
    """
    code = code_in(text) or (text if is_code or "\n" in text.strip() else None)
    if code is None:
        return ""
    tree = _parse(code)
    plain = "\n".join(line.rstrip() for line in code.strip().splitlines()) if tree is None else ast.dump(tree)
    return f"code {sha256(plain.encode()).hexdigest()}"


class ProgramReply(Struct, frozen=True):
    """A program."""

    program: Annotated[str, Meta(min_length=1, description="The whole program, in Python.")]


def read_program(_: Any, __: Ask, texts: Sequence[str]) -> tuple[ProgramReply, str] | Unreadable:
    """Read the program in the latest reply: in a fenced block, as the whole reply, or as JSON data."""
    program = program_in(texts[-1])
    if program is not None:
        return ProgramReply(program), "code"
    reading = read_form(texts[-1], ProgramReply)
    if isinstance(reading, Unreadable) or program_in(reading[0].program) is None:
        return Unreadable("it holds no Python program that can be parsed; reply with one ```python block")
    return reading


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class ProgramOutput(Struct, frozen=True):
    """The output of a program.

    Attributes:
        printed: The printed text before any error.
        value: The value of the last line.
        error: The error with its traceback, if any.
    """

    printed: str = ""
    value: Any = None
    error: str = ""

    @property
    def text(self) -> str:
        """The last printed line, or else the program's value. Empty after an error."""
        shown = self.printed.strip() or ("" if self.value is None else str(self.value).strip())
        return "" if self.error else shown.rpartition("\n")[2]

    @property
    def fault(self) -> str:
        """The reason why the output has no answer. Empty if there is an answer."""
        return self.error or ("" if self.text else "it printed nothing; print the answer")


def output_of(returned: ToolReturned | Failed) -> ProgramOutput:
    """Convert the result of the sandbox tool to the output of the program."""
    if isinstance(returned, Failed):
        return ProgramOutput(error=returned.message or _NOT_RUN)
    if isinstance(returned.value, str):
        return ProgramOutput(returned.value)
    document: Mapping[str, Any] = returned.value or {}
    output = ProgramOutput(str(document.get("stdout") or ""), document.get("value"))
    if document.get("status") == "ok":
        return output
    trace, _, error = str(document.get("error") or document.get("status") or "").strip().rpartition("\n")
    return replace(output, error=f"{error or _NOT_RUN}\n{trace[-MAX_ERROR:]}".strip())


def run_programs(state: Any, programs: Mapping[str, str]) -> Generator[Request, Any, list[ProgramOutput]]:
    """Run programs in parallel in the sandbox and return their outputs. If there is no sandbox, the run fails.

    Args:
        programs: Maps the id of a part of the result document to the program of that part.
    """
    calls = [CallTool(SANDBOX_TOOL, {"code": code}, about) for about, code in programs.items()]
    returned = yield request(state, *calls, give_failures=True)
    for each in returned:
        if isinstance(each, Failed) and each.code == UNAVAILABLE:
            raise EffectFailed(each)
    return [output_of(each) for each in returned]
