"""Verifiers: code that proves candidates right or wrong without a model."""

import ast
import inspect
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..blocks.answer_form import OUTPUT
from ..blocks.data_types import read_as
from ..core.effects import Verify
from ..core.events import Verified
from ..engine.ports import Verifier
from ..errors import UsageError
from ..puzzles.expression import judge_sides
from ..puzzles.reading import read_numbers, read_puzzle
from ..puzzles.solutions import solve, solve_numbers
from ..puzzles.steps import expressions, final_expression, follow
from ..puzzles.term import Puzzle
from ..system.plugins import installed_plugins, split_plugin
from ..system.processes import read_regular_file
from ..text import did_you_mean, without_surrogates
from .command_verifier import SANDBOXED, UNSANDBOXED, CommandVerifier
from .python import call_anywhere
from .sandbox import open_sandbox

FORMS = (
    "arithmetic:TARGET",
    "json-schema:FILE",
    "python:FILE",
    f"{SANDBOXED}:PROGRAM",
    f"{UNSANDBOXED}:PROGRAM",
    "PACKAGE/NAME:…",
)
MAX_FILE_BYTES = 16_000_000

NO_NUMBERS = "no numbers of a puzzle can be read in the problem"


class ArithmeticVerifier:
    """Checks candidates for a number puzzle by following their moves exactly.

    Args:
        target: The number to reach. The problem states the numbers to use.
    """

    def __init__(self, target: Fraction | int) -> None:
        self.target = Fraction(target)
        self.name = f"arithmetic:{self.target}"

    async def verify(self, claim: Verify) -> Verified:
        """Check a candidate. If the problem has no readable numbers, the verdict is `unknown`."""
        numbers = read_numbers(claim.problem)
        if numbers is None:
            return Verified("unknown", NO_NUMBERS)
        return judge(Puzzle(numbers, self.target), claim)


def judge(puzzle: Puzzle, claim: Verify) -> Verified:
    """Return the verdict on a candidate of a puzzle.

    A complete expression counts wherever it occurs in the candidate. Otherwise the moves of the path are followed.
    """
    candidate, fault = claim.path[-1] if claim.path else "", ""
    for sides in expressions(candidate):
        term, why = judge_sides(sides, puzzle)
        if term is not None and not why:
            return Verified("right", "it is true", answer=term.equation)
        fault = fault or why
    position = follow(puzzle, claim.path)
    answer = final_expression(puzzle, position)
    if answer is not None:
        return Verified("right", "it arrives", answer=answer)
    target, left = str(puzzle.target), ", ".join(map(str, position.numbers))
    if claim.final:
        fault, numbers = fault or position.fault, ", ".join(map(str, puzzle.numbers))
        if not fault and solve(puzzle) is None:
            return Verified("unknown", f"{target} cannot be made from {numbers}")
        return Verified("wrong", fault or f"it holds no expression that makes {target} from {numbers}")
    if position.fault:
        return Verified("wrong", position.fault)
    if position.moves == follow(puzzle, claim.path[:-1]).moves:
        return Verified("unknown", "no move can be read in it")
    if len(position.left) == 1:
        return Verified("wrong", f"it ends with {left}, not {target}")
    if solve_numbers(position.numbers, puzzle.target) is None:
        return Verified("wrong", f"{target} cannot be made from {left}")
    return Verified("unknown", f"{target} can still be made from {left}")


class JsonSchemaVerifier:
    """Checks final answers against the JSON schema in a file.

    Raises:
        UsageError: The file cannot be read or is not a schema.
    """

    def __init__(self, path: str) -> None:
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry

        self.name = f"json-schema:{path}"
        try:
            schema = json.loads(_source(path, "schema"))
            if not isinstance(schema, dict):
                raise ValueError("it is not an object")
            kind = validator_for(schema, default=Draft202012Validator)
            kind.check_schema(schema)
        except (ValueError, RecursionError, SchemaError) as error:
            message = f"the schema {path!r} cannot be read: {getattr(error, 'message', error)}"[:500]
            raise UsageError(message, option="verifier", file=path) from None
        # With an empty registry, a `$ref` to another document is an error and causes no download.
        self._validator = kind(schema, registry=Registry())

    async def verify(self, claim: Verify) -> Verified:
        """Check a final answer. The verdict on an intermediate step is `unknown`."""
        if not claim.final or not claim.path:
            return Verified("unknown", "only final answers are held to the schema")
        try:
            document = json.loads(claim.path[-1])
        except (ValueError, RecursionError) as error:
            return Verified("wrong", f"it is not JSON: {error}"[:500])
        try:
            fault = next(iter(self._validator.iter_errors(document)), None)
        except Exception as error:
            return _failure(f"the schema failed: {type(error).__name__}: {error}")
        if fault is None:
            return Verified("unknown", "it fits the schema")
        return Verified("wrong", f"at {fault.json_path}: {fault.message}"[:500])


class TypeVerifier:
    """Checks the typed output of a run. The run's own verifier checks all other candidates.

    Args:
        kind: A type, as in the argument `output_type` of `solve`.
    """

    def __init__(self, kind: Any, own: Verifier | None) -> None:
        self.kind, self.own, self.name = kind, own, own.name if own else ""

    async def verify(self, claim: Verify) -> Verified:
        """Check a candidate."""
        if claim.about != OUTPUT:
            return await self.own.verify(claim) if self.own else Verified("unknown", "no verifier was given")
        try:
            read_as(self.kind, json.loads(claim.path[-1]))
        except ValueError as error:
            return Verified("wrong", str(error)[:500])
        return Verified("unknown", "it fits the type")


class CallableVerifier:
    """Calls a Python callable `(problem, path)`, with an optional third parameter `final`.

    The callable checks every candidate, intermediate steps included. `final` says whether the candidate claims to be
    the answer. `True` proves the candidate right and ends the run. `False` proves it wrong. A text also proves it wrong
    and is the reason. `None` means `unknown`. A `Verified` is used unchanged. With any other value, the callable fails.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        try:
            self.takes_final = "final" in inspect.signature(function).parameters
        except (TypeError, ValueError):
            self.takes_final = False
        self.name = f"python:{getattr(function, '__name__', type(function).__name__)}"

    async def verify(self, claim: Verify) -> Verified:
        """Check a candidate. Exceptions that the callable raises propagate to the caller."""
        named = {"final": claim.final} if self.takes_final else {}
        verdict = await call_anywhere(self.name, self.function, claim.problem, list(claim.path), **named)
        return _verdict(verdict)


class SandboxedVerifier:
    """Runs the function `verify(problem, path)` of a Python file in a sandbox; see `CallableVerifier`.

    The return values mean the same as for `CallableVerifier`. An exception, a reached limit or a denied operation
    counts as a failure of the verifier.

    Raises:
        UsageError: The file cannot be read, is not Python, or has no `verify`.
        SandboxError: No sandbox is available.
    """

    def __init__(self, path: str) -> None:
        try:
            self.source = _source(path, "verifier")
            body = ast.parse(self.source).body
        except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
            message = f"the verifier {path!r} cannot be read: {error}"
            raise UsageError(message, option="verifier", file=path) from None
        defined = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == "verify"]
        if not defined:
            message = f"the verifier {path!r} has no function `verify(problem, path)`"
            raise UsageError(message, option="verifier", file=path)
        parts = ast.walk(defined[-1].args)
        self.takes_final = any(isinstance(part, ast.arg) and part.arg == "final" for part in parts)
        self.sandbox, self.name = open_sandbox(), f"python:{path}"

    async def verify(self, claim: Verify) -> Verified:
        """Check a candidate."""
        final = f", final={claim.final}" if self.takes_final else ""
        # A text in ASCII is the same for every interpreter that reads it.
        problem, *path = [ascii(without_surrogates(text)) for text in (claim.problem, *claim.path)]
        call = f"verify({problem}, [{', '.join(path)}]{final})"
        execution = await self.sandbox.run(f"{self.source}\n\n{call}")
        if execution.status == "ok":
            return _verdict(execution.value)
        reason = (execution.error or "").strip().rpartition("\n")[2]
        return _failure(f"the verifier failed ({execution.status}): {reason}")


def _verdict(verdict: Any) -> Verified:
    match verdict:
        case Verified():
            return verdict
        case True:
            return Verified("right")
        case False:
            return Verified("wrong", "the verifier says so")
        case str():
            return Verified("wrong", verdict[:500])
        case None:
            return Verified("unknown")
        case _:
            return _failure(f"the verifier returned {type(verdict).__name__}, which is no verdict")


def _failure(why: str) -> Verified:
    return Verified("unknown", why[:500], failed=True)


def idle_verifier_warning(verifier: Verifier | None, problem: str) -> str:
    """Return a warning if the verifier has nothing to check in a problem. Otherwise, return an empty text."""
    if isinstance(verifier, ArithmeticVerifier) and read_numbers(problem) is None:
        return f"the verifier {verifier.name} has nothing to check: {NO_NUMBERS}"
    return ""


def reopen_verifier(
    name: str | None, environ: Mapping[str, str] | None = None, hides: Sequence[str] = ()
) -> Verifier | None:
    """Reopen the verifier of a run, by the name of the verifier.

    Raises:
        UsageError: The verifier cannot be opened by its name, for example because it was an object of a program.
    """
    try:
        return open_verifier(name, environ, hides) if name else None
    except UsageError as error:
        why = f"the run's verifier {name} cannot be opened by its name here; pass it again: {error.message}"
        raise UsageError(why, **error.details) from None


def open_verifier(spec: str, environ: Mapping[str, str] | None = None, hides: Sequence[str] = ()) -> Verifier:
    """Open the verifier that a user named.

    Args:
        environ: The environment variables, for `REASONRY_VERIFIER_HIDES`. Defaults to the variables of the process.
        hides: Patterns of files that appear empty inside the sandbox of a command.

    Raises:
        UsageError: The verifier is unknown or its file cannot be read; `choices` has the forms.
        SandboxError: The verifier runs code, and no sandbox is available.
    """
    check_verifier_form(spec)
    kind, _, rest = spec.partition(":")
    if hides and kind != SANDBOXED:
        message = f"only the sandbox of {SANDBOXED}:PROGRAM hides files; leave the patterns out"
        raise UsageError(message, option="verifier_hides")
    if split_plugin(spec) is not None:
        return installed_plugins().open("verifiers", spec, as_verifier)
    if kind == "arithmetic":
        return ArithmeticVerifier(_target(rest))
    if kind in (SANDBOXED, UNSANDBOXED):
        listed = (os.environ if environ is None else environ).get("REASONRY_VERIFIER_HIDES", "").split(",")
        hides = (*hides, *filter(None, map(str.strip, listed)))
        return CommandVerifier(rest, sandboxed=kind == SANDBOXED, hides=hides)
    return JsonSchemaVerifier(rest) if kind == "json-schema" else SandboxedVerifier(rest)


def as_verifier(value: Any) -> Verifier:
    """Turn a callable into a verifier (see `CallableVerifier`), or raise UsageError. A verifier is kept as it is."""
    if not callable(getattr(value, "verify", value)):
        raise UsageError(
            f"verifier is text, a callable or an object with `verify`, got {type(value).__name__}",
            option="verifier",
        )
    return value if hasattr(value, "verify") else CallableVerifier(value)


def check_verifier_form(spec: str) -> None:
    """Check the syntax of a verifier's name without opening a file.

    Raises:
        UsageError: The verifier is unknown; `choices` has the forms.
    """
    if split_plugin(spec) is not None:
        return
    kind, _, rest = spec.partition(":")
    if kind not in (kinds := [form.partition(":")[0] for form in FORMS]):
        near = did_you_mean(kind, kinds) or f" The forms: {', '.join(FORMS)}."
        raise UsageError(f"there is no verifier {spec[:60]!r}.{near}", option="verifier", choices=list(FORMS))
    if kind == "arithmetic":
        _target(rest)


def _target(text: str) -> Fraction:
    """Read a number. An exponent that would need too many digits is refused."""
    try:
        if not re.fullmatch(r"\s*[^\seE]{1,100}([eE][+-]?\d{1,2})?\s*", text):
            raise ValueError
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        message = f"arithmetic: takes a number, such as arithmetic:24, got {text[:40]!r}"
        raise UsageError(message, option="verifier") from None


def _source(path: str, kind: str) -> str:
    return read_regular_file(path, MAX_FILE_BYTES, label=kind, option="verifier").decode("utf-8")


def exact_verifier(problem: str) -> Verifier | None:
    """Return the verifier for a number puzzle, or None for any other problem."""
    puzzle = read_puzzle(problem)
    return None if puzzle is None else ArithmeticVerifier(puzzle.target)
