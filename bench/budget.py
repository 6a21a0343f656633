"""Hard budgets: 30 calls wanted at once, 10 allowed; counted at the server.

    uv run python bench/budget.py [--latency-ms 50]

Rows: a plain gather that looks at its budget when answers are back; the engine with a limit on calls; the same, killed
without warning half-way and resumed; the engine with a limit on tokens worth 10 calls; and the two limits with a
server that gives several samples a request (`n`), which the others have not.
Targets: exactly 10 calls at the server. Killed and resumed, exactly 10 in the run's own books, and at the server no
more than that: a call is written down before it goes out, so a kill may leave one that never went. A limit on tokens
is passed by at most what one call takes, with `n` too. With `n`, a limit on calls counts requests: all 30 samples come
in one. The 30 are one round; a run that is closed within it votes with what came in. Only the last row
draws windows of 5, since what a sample takes must be known before a request may ask for several.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from brains import brain, question
from crash import kill_after, run_status
from loopback import ServerProcess
from shell import command
from wire import Wire, progress

from reasonry.reading.vote import tally

WANTED, ALLOWED = 30, 10
ROWS = 6


class Ended(NamedTuple):
    """How a row ended, and what the run has in its books."""

    reason: str
    answer: str | None
    booked: int


class Row(NamedTuple):
    """A row, and what the server counted for it."""

    name: str
    calls: int
    samples: int
    tokens: int
    ended: Ended


def ordered(server: ServerProcess, store: str, *limit: str, stop: str = "full") -> list[str]:
    options = ("--option", f"samples={WANTED}", "--option", f"stop={stop}")
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
        at_once=WANTED,
    )


def finished(arguments: list[str]) -> Ended:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    document = json.loads(done.stdout)
    votes = document["votes"]
    answer = document["answer"] or (f"{votes[0]['answer']} so far" if votes else None)
    return Ended(document["termination"]["reason"], answer, document["usage"]["calls"])


async def gathered(server: ServerProcess) -> Ended:
    """Send all, count when they are back."""
    wire, answers = Wire(server.url), list[str]()
    for reply in asyncio.as_completed([wire.ask(question(3), "answer") for _ in range(WANTED)]):
        if len(answers) < ALLOWED:
            answers.append((await reply)["answer"])
        else:
            await reply
    await wire.close()
    return Ended("counted afterwards", tally(answers)[0].answer, len(answers))


def resumed(server: ServerProcess, store: str) -> Ended:
    """Kill a run with its calls in flight, and take it up again."""
    arguments = ordered(server, store, "--max-calls", str(ALLOWED))
    kill_after(arguments, server, ALLOWED // 2)
    run_id, _ = asyncio.run(run_status(store))
    assert run_id is not None
    return finished(command("runs", "resume", run_id, store=store, at_once=WANTED))


def measured(folder: Path, latency_ms: float) -> list[Row]:
    rows: list[Row] = []
    with ServerProcess(
        brain=brain("vote"), latency_ms=latency_ms, keep_bodies=0, samples="ignored"
    ) as server:

        def take(name: str, ended: Ended) -> Row:
            stats = server.stats()
            tokens = stats["prompt_tokens"] + stats["completion_tokens"]
            rows.append(Row(name, stats["requests"], stats["samples"], tokens, ended))
            progress("budgets", len(rows), ROWS)
            return rows[-1]

        def limited(name: str, option: str, value: int, stop: str = "full") -> Row:
            store = str(folder / f"{len(rows)}.db")
            row = take(
                f"{option} {value}{name}", finished(ordered(server, store, option, str(value), stop=stop))
            )
            server.reset()
            return row

        take("plain gather", asyncio.run(gathered(server)))
        server.reset()
        tokens = limited("", "--max-calls", ALLOWED).tokens
        take("the same, killed, resumed", resumed(server, str(folder / "killed.db")))
        server.reset()
        limited("", "--max-tokens", tokens)
        server.reset(samples="served")
        limited(", n", "--max-calls", ALLOWED)
        limited(", n, windows", "--max-tokens", tokens, "exact")
    return rows


def good(rows: list[Row]) -> bool:
    """Whether everything is as it is announced."""
    _, calls, killed, tokens, calls_n, tokens_n = rows
    limit, one = calls.tokens, calls.tokens / ALLOWED
    return (
        calls.calls == calls.ended.booked == ALLOWED
        and killed.calls <= killed.ended.booked == ALLOWED
        and all(row.tokens <= limit + one for row in (tokens, tokens_n))
        and (calls_n.calls, calls_n.samples, calls_n.ended.booked) == (1, WANTED, 1)
        and tokens_n.calls < tokens_n.samples
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency-ms", type=float, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder), given.latency_ms)
    print(f"{'':<28} {'calls':>6} {'booked':>6} {'samples':>7} {'tokens':>7}  {'ended':<18} answer")
    for name, calls, samples, used, (reason, answer, booked) in rows:
        print(
            f"{name:<28} {calls:6d} {booked:6d} {samples:7d} {used:7d}  {reason:<18} {answer or 'none yet'}"
        )
    print("target met" if good(rows) else "TARGET MISSED")
    return 0 if good(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
