"""`reasonry store`: looking after the place where runs and sessions are kept."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from ...app import App
from ...runtime.ports import Finding
from .. import present
from .output import print_document, print_line, print_note
from .settings import Common, run_async, with_app

SHOW_EVERY = 100
"""Runs and sessions between two words about how far a check has come."""


def verify_(*, all: Annotated[bool, Parameter(negative=())] = False, common: Common = Common()) -> int:
    """Check everything that is stored and say what is whole. Nothing is changed, and others may go on writing.

    The exit code is 6 if anything is damaged.

    Parameters
    ----------
    all
        List what is whole as well, not only what is not.
    """
    findings = run_async(with_app(common.app(), _verify))
    document = _document(findings, every=all)
    if common.json:
        print_document(document)
    else:
        _show(document)
    return 0 if document["whole"] else present.EXIT_CODES["store_corrupt"]


async def _verify(app: App) -> list[Finding]:
    findings = list[Finding]()
    if sys.stderr.isatty():
        print_note(f"checking {app.store.name}")
    async for finding in app.store.verify():
        findings.append(finding)
        done = len(findings) - 1
        if done and done % SHOW_EVERY == 0 and sys.stderr.isatty():
            print_note(f"{done:,} of {findings[0].entries:,} runs and sessions are checked")
    return findings


def _document(findings: list[Finding], *, every: bool) -> dict[str, Any]:
    file, *parts = findings
    counts = {kind: Counter(part.state for part in parts if part.kind == kind) for kind in ("run", "session")}
    return {
        "store": file.id,
        "whole": all(finding.state != "damaged" for finding in findings),
        "file": file.state,
        "runs": _counted(counts["run"]),
        "sessions": _counted(counts["session"]),
        "lines": sum(part.entries for part in parts if part.kind == "run"),
        "thoughts": sum(part.entries for part in parts if part.kind == "session"),
        "findings": [
            msgspec.to_builtins(finding) | {"state": finding.state}
            for finding in findings
            if every or finding.state != "whole"
        ],
    }


def _counted(counts: Counter[str]) -> dict[str, int]:
    return {state: counts[state] for state in ("whole", "damaged", "unchecked")}


def _show(document: dict[str, Any]) -> None:
    for finding in document["findings"]:
        name = "" if finding["kind"] == "file" else f" {finding['id']}"
        what = f": {finding['message']}" if "message" in finding else ""
        print_line(f"{finding['state']:<9}  {finding['kind']}{name}{what}")
    for kind, entries in (("runs", "lines"), ("sessions", "thoughts")):
        counts = [f"{number:,} {state}" for state, number in document[kind].items() if number]
        print_line(f"{kind}: {', '.join(counts) or 'none'}; {document[entries]:,} {entries} checked")
    print_line(f"the store {document['store']} is {'whole' if document['whole'] else 'DAMAGED'}")
