"""The program inside the bubblewrap sandbox: it drops its rights, runs the code, and writes the result.

The program runs on Linux only. No module imports this file: a bare interpreter (`-I -S -c`) receives the text, so the
program uses only the standard library. The host trusts its output no more than the output of the code itself.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import errno
import json
import math
import os
import sys
import traceback
from types import TracebackType
from typing import Any, cast

MAX_DEPTH = 60
FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names) & ~0x10
DENIALS = (errno.EPERM, errno.EACCES, errno.EROFS, errno.ENETUNREACH, errno.ENETDOWN)


def give_up(task: dict[str, Any]) -> None:
    """Drop all privileges and set all limits. A failure ends the process."""
    import resource

    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(task["uid"], task["uid"], task["uid"])
        os.setresuid(task["uid"], task["uid"], task["uid"])
    if 0 in (*os.getresuid(), *os.getresgid()):
        sys.exit("still running as root")
    for kind, amount in task["rlimits"].items():
        resource.setrlimit(getattr(resource, kind), tuple(amount))
    os.nice(5)
    # Set these only in the C environment: `os.environ`, which the code sees, is empty.
    os.environ.clear()
    os.putenv("OPENBLAS_NUM_THREADS", "1")
    os.putenv("OMP_NUM_THREADS", "1")
    sys.path.extend(task["paths"])


def run(code: str) -> Any:
    """Run code. If the last statement is an expression, return the value of the expression."""
    space: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    tree = ast.parse(code, "<code>")
    last = tree.body[-1].value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if last is not None:
        tree.body.pop()
    body = compile(tree, "<code>", "exec", dont_inherit=True)
    exec(body, space)
    if last is None:
        return None
    # A `from __future__` statement in the code applies to its last line too.
    expression = compile(ast.Expression(last), "<code>", "eval", body.co_flags & FUTURES, dont_inherit=True)
    return eval(expression, space)


def data(value: Any, depth: int = 0) -> Any:
    """Convert a value to JSON data. Objects without a JSON form become text."""
    if depth > MAX_DEPTH:
        raise RecursionError("the value is nested too deeply")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, dict):
        return {str(key): data(item, depth + 1) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [data(item, depth + 1) for item in cast("list[Any]", value)]
    for name in ("tolist", "item"):
        method = getattr(value, name, None)
        if callable(method) and not isinstance(value, type):
            return data(method(), depth + 1)
    return text(value)


def text(value: Any) -> str:
    """Convert a value to text. An integer too long for decimal digits becomes hexadecimal."""
    try:
        return str(value)
    except ValueError:
        return hex(value)


def traceback_of(error: BaseException) -> str:
    """Return the traceback without this module's frames."""
    frame: TracebackType | None = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != "<code>":
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame, limit=-8)).strip()[-4000:]


def outcome(code: str) -> dict[str, Any]:
    """Run code and return its result."""
    try:
        return {"status": "ok", "value": data(run(code))}
    except SystemExit as error:
        if error.code in (None, 0):
            return {"status": "ok", "value": None}
        return {"status": "error", "error": f"SystemExit: {error.code}"[:4000]}
    except MemoryError:
        return {"status": "memory", "error": "MemoryError: the limit of memory was reached"}
    except BaseException as error:
        is_denied = isinstance(error, PermissionError) or (
            isinstance(error, OSError) and error.errno in DENIALS
        )
        return {"status": "denied" if is_denied else "error", "error": traceback_of(error)}


def cut(result: dict[str, Any], limit_bytes: int) -> bytes:
    """Return the result as JSON. A value over the limit becomes shortened text."""
    value = json.dumps(result.get("value"), ensure_ascii=False).encode(errors="replace")
    if len(value) > limit_bytes:
        whole = result["value"] if isinstance(result["value"], str) else value.decode()
        kept = whole.encode(errors="replace")[:limit_bytes].decode(errors="ignore")
        result |= {"value": kept, "truncated": True}
    return json.dumps(result, ensure_ascii=False).encode(errors="replace")


def main() -> None:
    """Run the task from standard input, and write the result to standard output."""
    task = json.load(sys.stdin)
    channel = os.dup(1)
    os.dup2(2, 1)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    give_up(task)
    os.write(channel, b"!")
    result = outcome(task["code"])
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
    with contextlib.suppress(BaseException):
        sys.stderr.flush()
    try:
        answer = cut(result, task["max_output_bytes"])
    except BaseException as error:
        result = {"status": "error", "error": f"the value has no text: {type(error).__name__}"}
        answer = json.dumps(result).encode()
    while answer:
        answer = answer[os.write(channel, answer) :]
    os._exit(0)


if __name__ == "__main__":
    main()
