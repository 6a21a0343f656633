"""Formal claims: what Z3 says is passed on, and nothing else comes through."""

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.system.plugins import install_hint
from reasonry.tools.logic_kernel import (
    ClaimChecker,
    UnreadableClaimError,
    check_claim,
    expressions,
    read_claim,
)

pytestmark = pytest.mark.anyio

SOCRATES = """
(set-logic ALL) ; what is known
(declare-sort Being 0)
(declare-fun human (Being) Bool)
(declare-fun mortal (Being) Bool)
(declare-const Socrates Being)
(assert (forall ((x Being)) (=> (human x) (mortal x))))
(assert (human Socrates))
(prove (mortal Socrates))
(check-sat)
"""


@pytest.fixture(autouse=True)
def _needs_z3(request: pytest.FixtureRequest) -> None:
    if "anyio_backend" in request.fixturenames:
        pytest.importorskip("z3")


@pytest.mark.parametrize(
    "claim",
    [
        SOCRATES,
        '{"declarations": ["(declare-const x Int)"], "assumptions": ["(> x 2)"], "claim": "(> (* x x) 4)"}',
        {"declarations": ["(declare-const p Bool)"], "claim": "(or p (not p))"},
        {
            "declarations": ["(declare-const s String)"],
            "assumptions": ['(= s "a "" ) ;b")'],
            "claim": '(= s "a "" ) ;b")',
        },
        {"declarations": ["(declare-const |a ; (b| Int)"], "claim": "(= |a ; (b| |a ; (b|)"},
        {"declarations": ["(define-fun twice ((n Int)) Int (* 2 n))"], "claim": "(= (twice 21) 42)"},
    ],
)
async def test_what_follows_is_proved(claim: Any) -> None:
    assert (await check_claim(claim)).verdict == "proved"


async def test_what_does_not_follow_is_refuted_with_values() -> None:
    text = "(declare-const price Int) (assert (> price 0)) (prove (> price 1))"
    ruling = await check_claim(text)
    assert (ruling.verdict, ruling.counter_example, ruling.reason) == ("refuted", {"price": "1"}, None)


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("", "one (prove TERM)"),
        ("all humans are mortal", "'all' may not stand"),
        ("(declare-const x Int) (assert (> x 1)) (check-sat)", "one (prove TERM)"),
        ("(prove true) (prove false)", "2 were found"),
        ("(prove (> y 1))", "unknown constant y"),
        ("(declare-const x Int) (prove (> x", "does not close"),
        ("(declare-const x Int) (prove (> x 1)))", "too many"),
        ("(declare-const x Int) (prove x)", "cannot be read"),
        ('(prove (= "a b))', "does not close"),
        ("{nonsense", "form"),
        ("{" * 5000, "form"),
        ("(prove " + "(not " * 5000 + "true" + ")" * 5001, ""),
        ('{"claim": 3}', "form"),
        ('{"claim": "true", "extra": 1}', "form"),
        ({}, "form"),
        (None, "form"),
        ([1, 2], "form"),
        ({"claim": "true))"}, "too many"),
        ({"claim": "true) (prove true"}, "2 were found"),
        ({"claim": "true true"}, "cannot be read"),
        ({"claim": "(assert true)"}, "cannot be read"),
        ({"claim": "true", "declarations": ["(assert false)"]}, "contradict"),
        ("(prove " + "true " * 40_000 + ")", "characters long"),
    ],
)
async def test_what_cannot_be_read_is_unknown_with_the_reason(claim: Any, reason: str) -> None:
    ruling = await check_claim(claim)
    assert ruling.verdict == "unknown" or (reason == "" and ruling.verdict == "proved")
    assert reason in (ruling.reason or "")


async def test_from_assumptions_that_contradict_each_other_nothing_is_proved() -> None:
    ruling = await check_claim("(declare-const x Int) (assert (> x 0)) (assert (< x 0)) (prove (= x 7))")
    assert (ruling.verdict, "contradict" in (ruling.reason or "")) == ("unknown", True)


FERMAT = """
(declare-const x Int) (declare-const y Int) (declare-const z Int)
(prove (not (and (> x 1) (> y 1) (> z 1) (= (+ (* x x x) (* y y y)) (* z z z)))))
"""


async def test_what_takes_too_long_is_unknown_in_time() -> None:
    began = time.monotonic()
    ruling = await check_claim(FERMAT, max_seconds=0.5)
    assert (ruling.verdict, "within 0.5 s" in (ruling.reason or "")) == ("unknown", True)
    assert time.monotonic() - began < 5


async def test_what_takes_too_much_memory_is_unknown() -> None:
    terms = " ".join(f"(declare-const a{n} (_ BitVec 2048))" for n in range(20))
    product = "(bvmul " + " ".join(f"a{n}" for n in range(20)) + ")"
    claim = f"{terms} (prove (not (= {product} (bvadd (bvudiv {product} a1) a2 #x{'5' * 512}))))"
    began = time.monotonic()
    ruling = await check_claim(claim, max_seconds=20, max_memory_mb=200)
    assert (ruling.verdict, bool(ruling.reason)) == ("unknown", True)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "command",
    [
        '(set-option :regular-output-channel "FILE")',
        '(set-option :diagnostic-output-channel "FILE")',
        '(include "FILE")',
        '#| ) |# (set-option :regular-output-channel "FILE")',
        '(declare-const x Int) |(| (set-option :regular-output-channel "FILE") |)|',
        '(echo "x")',
        "(reset)",
        "(eval 1)",
    ],
)
async def test_commands_that_do_more_than_state_are_not_passed_on(tmp_path: Path, command: str) -> None:
    file = tmp_path / "file"
    file.write_text("(prove true)", "utf-8")
    ruling = await check_claim(command.replace("FILE", str(file)) + " (prove true)")
    assert ruling.verdict == "unknown"
    wrapped = {"declarations": [command.replace("FILE", str(file))], "claim": "true"}
    assert (await check_claim(wrapped)).verdict == "unknown"
    assert file.read_text("utf-8") == "(prove true)"


async def test_without_z3_the_verdict_is_unknown_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    ruling = await check_claim("(prove true)")
    assert (ruling.verdict, install_hint("logic") in (ruling.reason or "")) == ("unknown", True)
    assert (await ClaimChecker().call({"claim": "true"}))["verdict"] == "unknown"


async def test_the_tool_takes_parts_or_a_whole_text() -> None:
    parts = {"declarations": ["(declare-const x Int)"], "claim": "(> x 0)"}
    refuted = await ClaimChecker().call(parts)
    assert (refuted["verdict"], list(refuted["counter_example"])) == ("refuted", ["x"])
    for whole in (SOCRATES, json.dumps({"claim": "(= 1 1)"})):
        assert (await ClaimChecker().call({"claim": whole}))["verdict"] == "proved"
    assert (await ClaimChecker().call({"claim": "(= 1 2)"}))["verdict"] == "refuted"
    assert (await ClaimChecker().call({}))["verdict"] == "unknown"


@given(st.text(alphabet='()"|;\\ \nab#', max_size=40))
def test_a_text_is_read_into_whole_expressions_or_refused(text: str) -> None:
    try:
        found = list(expressions(text))
    except UnreadableClaimError:
        return
    for one in found:
        assert list(expressions(one)) == [one]


@given(
    st.text(max_size=60)
    | st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.text(), inner))
)
def test_anything_is_a_claim_or_refused(claim: Any) -> None:
    with contextlib.suppress(UnreadableClaimError):
        grounds, term = read_claim(claim)
        assert [list(expressions(one)) for one in grounds] == [[one] for one in grounds]
        assert term == " ".join(expressions(term))
