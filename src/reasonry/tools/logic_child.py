"""Checks a claim with Z3 in a separate process. No module imports this file: its text is passed to Python.

Z3's native code may run out of stack or memory. A separate process can be killed without harm to other processes.
"""

import contextlib
import json
import sys
from typing import Any, cast


def limit(memory_mb: int, seconds: int) -> None:
    """Set the operating system's limits for this process."""
    # Some systems do not have these limits; the host ends the process in any case.
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 2**20, memory_mb * 2**20))


def rule(task: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on a claim."""
    import z3 as untyped

    z3 = cast("Any", untyped)
    solver = z3.Solver()
    solver.set("timeout", int(task["timeout_ms"]))
    try:
        solver.from_string(task["assumed"])
        if solver.check() == z3.unsat:
            reason = "the assumptions contradict each other: anything follows from them"
            return {"verdict": "unknown", "reason": reason}
        denied = z3.Solver()
        denied.set("timeout", int(task["timeout_ms"]))
        denied.from_string(task["denied"])
    except z3.Z3Exception as error:
        value: Any = error.value
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        return {"verdict": "unknown", "reason": f"it cannot be read: {text.strip()}"[:1000]}
    found = denied.check()
    if found == z3.unsat:
        return {"verdict": "proved"}
    if found == z3.sat:
        model = denied.model()
        counter_example = {str(name): str(model[name])[:500] for name in model.decls()}
        return {"verdict": "refuted", "counter_example": counter_example}
    return {"verdict": "unknown", "reason": f"Z3 gives up: {denied.reason_unknown()}"}


def main() -> None:
    """Read the task from standard input and write the verdict to standard output."""
    task = json.load(sys.stdin)
    limit(task["max_memory_mb"], task["max_cpu_s"])
    sys.stdout.write(json.dumps(rule(task)))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
