"""Whatever is sent, there is a clear answer, nothing has changed, and the next call is served."""

from collections.abc import Iterator
from typing import Any

import pytest

from .raw import Raw, call_line, thought

PLAIN = b'{"thought":%b,"nextThoughtNeeded":true,"thoughtNumber":2,"totalThoughts":2%b}'


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with Raw(DISABLE_THOUGHT_LOGGING="true") as server:
        server.think(strategy="linear")
        yield server


def _status(raw: Raw) -> dict[str, Any]:
    found = raw.call("sessions", action="get")
    del found["used_at"]
    return found


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


LINES = {
    "not JSON": (b"hello", -32700),
    "half a message": (b'{"jsonrpc":"2.0","id":1,', -32700),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff\xfe"}', -32700),
    "a byte order mark": (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', -32700),
    "a number": (b"5", -32600),
    "null": (b"null", -32600),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    "no version": (b'{"id":1,"method":"ping"}', -32600),
    "an old version": (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    "null as id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    "a fraction as id": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    "a huge id": (b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % 10**30, -32600),
    "half a character as id": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32602),
    "a method that is no text": (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
    "a list of params": (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', -32600),
    "nothing but depth": (_nested(100_000), -32600),
}


@pytest.mark.parametrize("name", LINES)
def test_a_bad_line_is_refused_with_a_code_and_the_server_lives(raw: Raw, name: str) -> None:
    line, code = LINES[name]
    before = _status(raw)
    answer = raw.ask_line(line)
    assert answer["error"]["code"] == code
    assert answer["error"]["message"]
    assert _status(raw) == before


def test_an_empty_line_is_passed_over(raw: Raw) -> None:
    raw.line(b"")
    raw.line(b"   ")
    assert raw.ask("ping")["result"] == {}


CALLS = {
    "a lone surrogate": (PLAIN % (b'"a\\ud800b"', b""), "invalid_request"),
    "a lone surrogate in data": (PLAIN % (b'"a"', b',"data":{"\\udfff":1}'), "invalid_request"),
    "a number out of range": (b'{"thoughtNumber":1e999}', "invalid_request"),
    "not a number": (b'{"thoughtNumber":NaN}', "invalid_request"),
    "100,000 deep": (PLAIN % (b'"a"', b',"data":{"x":%b}' % _nested(100_000)), "invalid_request"),
    "1,000 deep": (PLAIN % (b'"a"', b',"data":{"x":%b}' % _nested(1_000)), "invalid_request"),
    "10 MB of thought": (PLAIN % (b'"%b"' % (b"x" * 10_000_000), b""), "payload_too_large"),
    "40 MB of thought": (PLAIN % (b'"%b"' % (b"x" * 40_000_000), b""), "payload_too_large"),
    "10 MB of data": (PLAIN % (b'"a"', b',"data":{"x":"%b"}' % (b"x" * 10_000_000)), "payload_too_large"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_cannot_be_taken_gets_an_error_of_the_tool(raw: Raw, name: str) -> None:
    arguments, code = CALLS[name]
    before = _status(raw)
    result = raw.ask_line(call_line(arguments))["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["error"]["code"] == code
    assert result["structuredContent"]["error"]["message"]
    assert _status(raw) == before


def test_a_correction_has_the_spelling_of_the_tool(raw: Raw) -> None:
    raw.call("sequentialthinking", **thought(1), strategy="tree_of_thoughts")
    raw.call("sequentialthinking", **thought(2), stage="approach_exploration")
    raw.call("sequentialthinking", **thought(3), branchId="b", stage="branch_creation")
    error = raw.call("sequentialthinking", **thought(4), stage="problem_reception")["error"]
    assert error["instead"] == {"branchId": None, "branchFromThought": 1, "stage": "problem_reception"}
    error = raw.call("sequentialthinking", **thought(4), branchId="b", mergeBranch="b")["error"]
    assert (error["field"], error["instead"]) == ("mergeBranch", {"branchId": "main"})
