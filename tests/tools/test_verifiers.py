"""Verifiers: what they prove is true, and what they cannot read they leave open."""

import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from reasonry.core.effects import Verify
from reasonry.core.events import Verified
from reasonry.errors import SandboxError, UsageError
from reasonry.tools.verifiers import ArithmeticVerifier, CallableVerifier, JsonSchemaVerifier, open_verifier

pytestmark = pytest.mark.anyio

PROBLEM = "Use 4, 9, 10 and 13 to make 24"


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        (("10 - 4 = 6",), "unknown"),
        (("10 - 4 = 7",), "wrong"),
        (("10 - 5 = 5",), "wrong"),
        (("10 * 13 = 130",), "wrong"),
        (("10 - 4 = 6", "13 - 9 = 4"), "unknown"),
        (("10 - 4 = 6", "13 - 9 = 4", "6 * 4 = 24"), "right"),
        (("10 - 4 = 6", "13 - 9 = 4", "6 + 4 = 10"), "wrong"),
        (("(10 - 4) * (13 - 9)",), "right"),
        (("let us think",), "unknown"),
        (("So (10 - 4) * (13 - 9) = 24.",), "right"),
        (("10 - 4 = 7", "(10 - 4) * (13 - 9)"), "right"),
        (("10 - 4 = 6 (left: 6 9 14)",), "wrong"),
        (("(10 - 4) * 4 = 24",), "wrong"),
        (("4 + 9 + 10 + 13 = 36",), "wrong"),
        ((), "unknown"),
    ],
)
async def test_arithmetic_is_judged_exactly(path: tuple[str, ...], verdict: str) -> None:
    ruling = await ArithmeticVerifier(24).verify(Verify(PROBLEM, path))
    assert ruling.verdict == verdict
    if verdict == "right":
        assert ruling.answer == "(10 - 4) * (13 - 9) = 24"


@pytest.mark.parametrize(
    ("problem", "answer", "verdict"),
    [
        (PROBLEM, "24", "wrong"),
        (PROBLEM, "(10 - 4) * (13 - 9) = 24", "right"),
        (PROBLEM, "It is 10 * 4 - 13 + 9.", "wrong"),
        (PROBLEM, "I give up", "wrong"),
        ("Use 1, 1, 1 and 1 to make 24", "There is none.", "unknown"),
        ("Who?", "x", "unknown"),
    ],
)
async def test_a_final_answer_is_right_or_wrong(problem: str, answer: str, verdict: str) -> None:
    assert (await ArithmeticVerifier(24).verify(Verify(problem, (answer,), final=True))).verdict == verdict


async def test_an_answer_without_its_expression_is_closed_from_the_path() -> None:
    path = ("10 - 4 = 6 (left: 6 9 13)", "13 - 9 = 4 (left: 4 6)", "6 * 4 = 24 (left: 24)", "24")
    final = await ArithmeticVerifier(24).verify(Verify(PROBLEM, path, final=True))
    assert (final.verdict, final.answer) == ("right", "(10 - 4) * (13 - 9) = 24")


async def test_the_target_is_the_verifier_s_and_bare_numbers_are_enough() -> None:
    verifier = ArithmeticVerifier(Fraction(1, 2))
    assert verifier.name == "arithmetic:1/2"
    assert (await verifier.verify(Verify("1 2 4", ("4 * 1 = 4",)))).verdict == "unknown"
    assert (await verifier.verify(Verify("1 2 4", ("4 - 2 - 1 = 1",)))).verdict == "wrong"
    assert (
        await verifier.verify(Verify("1 2 4", ("2 / 4 = 1/2", "1/2 * 1 = 1/2")))
    ).answer == "2 / 4 * 1 = 1/2"


async def test_a_schema_holds_final_answers_only(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"type": "object", "required": ["a"]}', "utf-8")
    verifier = open_verifier(f"json-schema:{path}")
    assert isinstance(verifier, JsonSchemaVerifier)
    assert (await verifier.verify(Verify("p", ("{}",)))).verdict == "unknown"
    assert (await verifier.verify(Verify("p", ("{}",), final=True))).verdict == "wrong"
    assert (await verifier.verify(Verify("p", ("nonsense",), final=True))).verdict == "wrong"
    assert (await verifier.verify(Verify("p", ('{"a": 1}',), final=True))).verdict == "unknown"


@pytest.mark.parametrize(
    ("schema", "verdict"),
    [
        ({"$ref": "http://127.0.0.1:9/nowhere.json"}, "unknown"),
        ({"$ref": "#/missing"}, "unknown"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, "wrong"),
        ({"type": "array", "maxItems": 0}, "wrong"),
    ],
)
async def test_a_schema_that_fails_itself_has_said_nothing(
    schema: dict[str, object], verdict: str, tmp_path: Path
) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema), "utf-8")
    ruling = await JsonSchemaVerifier(str(path)).verify(Verify("p", ("[1]",), final=True))
    assert (ruling.verdict, bool(ruling.detail)) == (verdict, True)


@pytest.mark.parametrize("content", ["", "[", "[]", "true", '{"type": "nonsense"}', '{"$ref": 5}'])
def test_what_is_no_schema_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(content, "utf-8")
    with pytest.raises(UsageError) as error:
        open_verifier(f"json-schema:{path}")
    assert error.value.details["option"] == "verifier"


@pytest.mark.parametrize(
    ("returned", "verdict", "failed"),
    [
        (True, "right", False),
        (False, "wrong", False),
        ("too long", "wrong", False),
        ("right", "wrong", False),
        (5, "unknown", True),
        ({}, "unknown", True),
        (None, "unknown", False),
        (Verified("right"), "right", False),
    ],
)
async def test_a_callable_says_what_it_says(returned: object, verdict: str, failed: bool) -> None:
    ruling = await CallableVerifier(lambda problem, path: returned).verify(Verify("p", ("x",)))
    assert (ruling.verdict, ruling.failed) == (verdict, failed)


async def test_a_callable_may_wait() -> None:
    async def slow(problem: str, path: list[str]) -> bool:
        return problem == "p" and path == ["x"]

    class Judge:
        async def __call__(self, problem: str, path: list[str]) -> str:
            return "no good"

    assert (await CallableVerifier(slow).verify(Verify("p", ("x",)))).verdict == "right"
    assert (await CallableVerifier(Judge()).verify(Verify("p", ("x",)))).detail == "no good"


class Method:
    def verdict(self, problem: str, path: list[str], final: bool) -> bool:
        return final


TOLD = [
    lambda problem, path, final: final,
    lambda problem, path, final=None: final,
    lambda problem, path, *, final: final,
    lambda problem, path, strict=3, final=None: final,
    Method().verdict,
]
NOT_TOLD = [
    lambda problem, path: "two",
    lambda problem, path, strict="two": strict,
    lambda *given: "two" if len(given) == 2 else "three",
]


@pytest.mark.parametrize("final", [False, True])
async def test_a_parameter_final_is_told_whether_a_candidate_is_final(final: bool) -> None:
    claim = Verify("p", ("x",), final=final)
    for function in TOLD:
        verdict = (await CallableVerifier(function).verify(claim)).verdict
        assert verdict == ("right" if final else "wrong")
    for function in NOT_TOLD:
        assert (await CallableVerifier(function).verify(claim)).detail == "two"


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("(problem, path, final)", True),
        ("(problem, path, final=None)", True),
        ("(problem, path, *, final)", True),
        ("(problem, path, strict='two')", False),
        ("(problem, path)", False),
    ],
)
async def test_a_file_s_parameter_final_is_told_too(tmp_path: Path, head: str, told: bool) -> None:
    last = head.strip("()").split(",")[-1].partition("=")[0].strip()
    body = f"return {last}" if told else "return 'two'"
    (tmp_path / "check.py").write_text(f"def verify{head}:\n    {body}\n", "utf-8")
    verifier = open_verifier(f"python:{tmp_path / 'check.py'}")
    for final in (False, True):
        ruling = await verifier.verify(Verify("p", ("x",), final=final))
        assert (ruling.failed, ruling.verdict) == (False, "right" if told and final else "wrong")
        assert (ruling.detail == "two") is not told


@pytest.mark.parametrize("spec", ["nonsense", "", "json-schema:/no"])
def test_a_wrong_spec_is_refused(spec: str) -> None:
    with pytest.raises(UsageError):
        open_verifier(spec)


CHECKER = """
def verify(problem, path):
    if path[-1] == "silent":
        return None
    if path[-1] == "boom":
        raise ValueError("no idea")
    return True if path[-1] == problem.split()[-1] else "it is not " + problem.split()[-1]
"""


@pytest.mark.parametrize(
    ("step", "verdict", "detail"),
    [
        ("24", "right", ""),
        ("25", "wrong", "it is not 24"),
        ("silent", "unknown", ""),
        ("boom", "unknown", "ValueError: no idea"),
        ('"]); nonsense = (["', "wrong", "it is not 24"),
        ("\ud800 \u2028 \\ '", "wrong", "it is not 24"),
    ],
)
async def test_a_file_is_asked_in_a_sandbox(tmp_path: Path, step: str, verdict: str, detail: str) -> None:
    (tmp_path / "check.py").write_text(CHECKER, "utf-8")
    verifier = open_verifier(f"python:{tmp_path / 'check.py'}")
    ruling = await verifier.verify(Verify("make 24", ("first", step)))
    assert (ruling.verdict, detail in ruling.detail) == (verdict, True)


async def test_a_file_cannot_reach_the_host(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("right", "utf-8")
    code = f"def verify(problem, path):\n    return open({str(secret)!r}).read() == 'right'\n"
    (tmp_path / "check.py").write_text(code, "utf-8")
    ruling = await open_verifier(f"python:{tmp_path / 'check.py'}").verify(Verify("p", ("x",)))
    assert (ruling.verdict, "denied" in ruling.detail) == ("unknown", True)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"def verify(", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"x = '\x00'", "cannot be read"),
        (b"def check(problem, path):\n    return True\n", "has no function `verify"),
    ],
)
def test_a_file_that_defines_no_verifier_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "check.py").write_bytes(content)
    with pytest.raises(UsageError, match=why):
        open_verifier(f"python:{tmp_path / 'check.py'}")


def test_code_is_not_run_without_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "check.py").write_text(CHECKER, "utf-8")
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(SandboxError, match="monty") as caught:
        open_verifier(f"python:{tmp_path / 'check.py'}")
    assert caught.value.code == "sandbox_unavailable"


@pytest.mark.parametrize(
    "target", ["1e999999999", "-1E+99999999", "9" * 101, "1e400", "1/1e999999", "", "nan", "inf", "1/0"]
)
def test_a_target_that_no_computer_has_room_for_is_refused_at_once(target: str) -> None:
    with pytest.raises(UsageError, match="takes a number"):
        open_verifier(f"arithmetic:{target}")


@pytest.mark.parametrize(("target", "shown"), [("24", "24"), (" -3/4 ", "-3/4"), ("2.5e1", "25")])
def test_a_target_is_any_number(target: str, shown: str) -> None:
    assert open_verifier(f"arithmetic:{target}").name == f"arithmetic:{shown}"
