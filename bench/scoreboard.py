"""Scoreboard: is a strategy worth its calls, on a model of yours? Asked of `reasonry compare`.

    uv run python bench/scoreboard.py openai-compatible:http://127.0.0.1:8990/v1#qwen [--problems 20] [--seed 1]

Each row is a strategy on a data set: problems solved with the 95 % interval, and for each problem the calls, the
replies of the model (several drawn in one call count each), the tokens, the share of first replies that follow their
question, and the calls lost to asking again. `direct` asks the problem and nothing else: the gain of another strategy
over it is the worth of that strategy. A change of a prompt shows its rows before and after.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

STRATEGIES = (
    "direct",
    "chain_of_thought",
    "program_of_thought",
    "self_consistency(samples=5)",
    "best_of_n(n=4)",
    "tree_of_thoughts(verify=true)",
)
DATASETS = ("arithmetic", "stories", "countdown", "claims")
VERIFIED = {"countdown": "arithmetic"}
"""The data sets with a verifier that needs no model, and the verifier."""


def rows_of(
    model: str, datasets: Iterable[str], strategies: Iterable[str], given: argparse.Namespace
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of each data set as they are measured."""
    with tempfile.TemporaryDirectory() as folder:
        for dataset in datasets:
            for strategy in strategies:
                command = [
                    *(
                        sys.executable,
                        "-m",
                        "reasonry",
                        "compare",
                        "--dataset",
                        f"{dataset}:{given.problems}",
                    ),
                    *(
                        "--seed",
                        str(given.seed),
                        "--strategies",
                        strategy,
                        "--model",
                        model,
                        "--json",
                        "--yes",
                    ),
                    *("--store", given.store or f"{folder}/runs.db", "--parallel", str(given.parallel)),
                    *("--max-output-tokens", str(given.max_output_tokens), "--call-timeout", "600"),
                ]
                ran = subprocess.run(command, capture_output=True, text=True, check=False)
                if not ran.stdout:
                    raise SystemExit(ran.stderr)
                yield from ((dataset, row) for row in json.loads(ran.stdout)["strategies"])


def line(dataset: str, row: dict[str, Any]) -> str:
    """Return a row as a line of a table in Markdown."""
    in_form = "–" if row["in_form"] is None else f"{row['in_form']:.0%}"
    cells = (
        dataset,
        row["strategy"],
        f"{row['right']}/{row['runs']}",
        f"{row['accuracy']:.0%} ({row['low']:.0%}–{row['high']:.0%})",
        f"{row['calls']:.1f}",
        f"{row['samples']:.1f}",
        f"{row['tokens']:,.0f}",
        in_form,
        f"{row['asked_again']:.1f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="as `--model` of reasonry takes it")
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--strategies", default=";".join(STRATEGIES), help="with semicolons between them")
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--max-output-tokens", type=int, default=256)
    parser.add_argument("--store", help="keeps the runs: what is there is not run again")
    given = parser.parse_args()
    print(
        "| data set | strategy | right | accuracy (95 %) | calls | samples | tokens | in form | asked again |"
    )
    print(f"|{' --- |' * 9}")
    for dataset, row in rows_of(given.model, given.datasets.split(","), given.strategies.split(";"), given):
        print(line(dataset, row), flush=True)


if __name__ == "__main__":
    main()
