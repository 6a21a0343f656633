"""Reads and writes JSON-RPC frames, one per line. Even a malformed request gets a reply."""

import json
import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from ...errors import ReasonryError, TooLargeError
from ...system.masking import SECRETS

T = TypeVar("T")

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

MAX_LINE_BYTES = 32 << 20
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_SKIM_BYTES = 4 << 20
_HEAD_BYTES = 1 << 16
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_VALUE = re.compile(rb'\s*:\s*(-?\d+|"(?:[^"\\]|\\.){0,256}")')


class _Request(Struct):
    jsonrpc: Literal["2.0"]
    id: str | Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
    method: str
    params: dict[str, Any] | None = None


class RefusedError(Exception):
    """A protocol error with which the server answers a request. Secrets in the message and the data are masked.

    Attributes:
        code: The JSON-RPC code.
        data: Details for programs.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code, self.message, self.data = code, SECRETS.mask(message), SECRETS.mask_data(data)
        super().__init__(self.message)


def read_params(form: type[T], params: dict[str, Any]) -> T:
    """Read the parameters of a request, or raise RefusedError. Unknown members are ignored."""
    try:
        return msgspec.convert(params, form)
    except msgspec.ValidationError as error:
        raise RefusedError(INVALID_PARAMS, f"Invalid params: {error}") from None


class UnreadableError(RefusedError):
    """A line from the client is unreadable.

    Attributes:
        id: The id of the request, or None if the id is unreadable.
        method: The method of the request, or None if the method is unreadable.
        cause: The error for the caller of a tool. None means a `UsageError` with the same message.
    """

    cause: ReasonryError | None = None

    def __init__(self, message: str, code: int, id: Any = None, method: Any = None) -> None:
        super().__init__(code, message)
        has_half = any("\ud800" <= char <= "\udfff" for char in str(id))
        self.id = id if is_id(id) and not has_half else None
        self.method = method


def read(line: bytes) -> dict[str, Any]:
    """Read the message on a line.

    Raises:
        UnreadableError: The line is too long, malformed, nested too deeply, or not a valid request.
    """
    if len(line) > MAX_LINE_BYTES:
        why = f"a message may be at most {MAX_LINE_BYTES:,} bytes long"
        refusal = _skim(line[:_HEAD_BYTES], INVALID_REQUEST, why)
        refusal.cause = TooLargeError(why, limit=MAX_LINE_BYTES)
        raise refusal
    try:
        message = _decode(line)
    except RecursionError:
        raise _skim(line, INVALID_REQUEST, "the message is nested too deeply; flatten it") from None
    except ValueError:
        if _HALF.search(line):
            why = "a string holds a lone surrogate, half of a character; send whole characters"
            raise _skim(line, INVALID_PARAMS, why) from None
        why = "Parse error: the line is not valid JSON in UTF-8, or a number in it is out of range"
        raise _skim(line, PARSE_ERROR, why) from None
    if isinstance(message, dict) and not ("id" in message and "method" in message):
        return message  # Notifications and replies are not checked.
    try:
        msgspec.convert(message, _Request)
    except msgspec.ValidationError as error:
        why = "batches are not supported; send one message a line" if isinstance(message, list) else error
        id = message.get("id") if isinstance(message, dict) else None
        raise UnreadableError(f"Invalid request: {why}", INVALID_REQUEST, id) from None
    return message


def _skim(line: bytes, code: int, why: str) -> UnreadableError:
    """Build the error for a message that was not decoded. Include the message's id and method if they can be read."""
    found: dict[bytes, Any] = {}
    depth = 0
    for match in _TOKEN.finditer(line, 0, _SKIM_BYTES):
        token = match.group()
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif depth == 1 and token in (b'"id"', b'"method"') and (value := _VALUE.match(line, match.end())):
            found.setdefault(token, value.group(1))
    try:
        known = {key: json.loads(value) for key, value in found.items()}
    except ValueError:
        known = {}
    return UnreadableError(why, code, known.get(b'"id"'), known.get(b'"method"'))


def is_id(value: Any) -> bool:
    """Whether a value is a legal request id."""
    if isinstance(value, int):
        return not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63
    return isinstance(value, str)


def result(id: Any, encoded: bytes) -> bytes:
    """Encode a reply as one line. `encoded` is the result, already in JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (_encode(id), encoded)


def error(id: Any, refusal: RefusedError) -> bytes:
    """Encode an error reply as one line."""
    data = {} if refusal.data is None else {"data": refusal.data}
    body = {"code": refusal.code, "message": refusal.message, **data}
    return _encode({"jsonrpc": "2.0", "id": id, "error": body}) + b"\n"


def notification(method: str, params: Any) -> bytes:
    """Encode a notification as one line."""
    return _encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n"
