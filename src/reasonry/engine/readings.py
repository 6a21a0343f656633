"""How the replies of runs were read: on which rung of the repair ladder, by model and strategy."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from .record import Record

UNREADABLE = "unreadable"


class Readings:
    """Counts of readings over runs, for each pair of model and strategy."""

    def __init__(self) -> None:
        self.runs = 0
        self.counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def add(self, record: Record) -> None:
        """Count the replies of a run."""
        self.runs += 1
        counts = self.counts[record.result.model, record.result.strategy]
        for question in record.entries("questions"):
            if rung := _rung(question):
                counts[rung] += 1

    def document(self) -> dict[str, Any]:
        """Return the counts as JSON data, most replies first."""
        rows = sorted(self.counts.items(), key=lambda row: (-row[1].total(), row[0]))
        return {
            "runs": self.runs,
            "readings": [
                {
                    "model": model,
                    "strategy": strategy,
                    "replies": counts.total(),
                    "unreadable": counts[UNREADABLE],
                    "rungs": dict(counts.most_common()),
                }
                for (model, strategy), counts in rows
                if counts
            ],
        }


def _rung(question: Mapping[str, Any]) -> str:
    """Return the rung a reply was read on; empty where there is no reply yet, or none was asked for."""
    read = question.get("read") or ""
    return read.partition(":")[0] if question.get("reply") is not None else ""
