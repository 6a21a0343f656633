"""Hard budgets: 30 calls wanted at once, 10 allowed; counted at the server.

    uv run python bench/budget.py [--latency-ms 50]

Rows: a plain gather that looks at its budget when answers are back; the engine with a limit on calls; the same, killed
without warning half-way and resumed; the engine with a limit on tokens worth 10 calls.
Targets: exactly 10 calls, before and after a crash; a limit on tokens passed by at most one call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from brains import brain, question
from crash import kill_after, standing
from wire import Wire, progress

from reasonry.testing import ServerProcess

WANTED, ALLOWED = 30, 10
ROWS = 4


def command(*arguments: str, store: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "reasonry",
        *arguments,
        "--store",
        store,
        "--max-concurrency",
        "30",
        "--json",
    ]


def ordered(server: ServerProcess, store: str, *limit: str) -> list[str]:
    options = ("--option", f"samples={WANTED}", "--option", "stop=full")
    return command(
        "solve",
        question(3),
        "--strategy",
        "self_consistency",
        "--model",
        server.model,
        *options,
        *limit,
        store=store,
    )


def finished(arguments: list[str]) -> tuple[str, str]:
    """Return how a run ended, and its answer."""
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    document = json.loads(done.stdout)
    return document["termination"]["reason"], str(document["answer"])


async def gathered(server: ServerProcess) -> tuple[str, str]:
    """Send all, count when they are back."""
    wire, answers = Wire(server.url), list[str]()
    for reply in asyncio.as_completed([wire.ask(question(3), "answer") for _ in range(WANTED)]):
        if len(answers) < ALLOWED:
            answers.append((await reply)["answer"])
        else:
            await reply
    await wire.close()
    return "counted afterwards", answers[0]


def resumed(server: ServerProcess, store: str) -> tuple[str, str]:
    """Kill a run with its calls in flight, and take it up again."""
    arguments = ordered(server, store, "--max-calls", str(ALLOWED))
    kill_after(arguments, server, ALLOWED // 2)
    run_id, _ = asyncio.run(standing(store))
    assert run_id is not None
    return finished(command("runs", "resume", run_id, store=store))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency-ms", type=float, default=50)
    given = parser.parse_args()
    rows: list[tuple[str, int, int, str, str]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(
            brain=brain("vote"), latency_ms=given.latency_ms, keep_bodies=0, samples="ignored"
        ) as server,
    ):

        def store(name: str) -> str:
            return str(Path(folder) / f"{name}.db")

        def take(name: str, ending: tuple[str, str]) -> int:
            stats = server.stats()
            tokens = stats["prompt_tokens"] + stats["completion_tokens"]
            rows.append((name, stats["requests"], tokens, *ending))
            progress("budgets", len(rows), ROWS)
            server.reset()
            return tokens

        take("plain gather", asyncio.run(gathered(server)))
        tokens = take(
            "--max-calls 10", finished(ordered(server, store("calls"), "--max-calls", str(ALLOWED)))
        )
        take("the same, killed, resumed", resumed(server, store("killed")))
        limit = ("--max-tokens", str(tokens))
        take(f"--max-tokens {tokens}", finished(ordered(server, store("tokens"), *limit)))
    print(f"{'':<26} {'calls':>6} {'tokens':>7}  ended")
    for name, calls, used, reason, _ in rows:
        print(f"{name:<26} {calls:6d} {used:7d}  {reason}")
    counts = [row[1] for row in rows]
    good = counts[1] == ALLOWED and counts[2] <= ALLOWED and counts[3] <= ALLOWED + 1
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
