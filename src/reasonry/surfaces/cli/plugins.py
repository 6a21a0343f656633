"""`reasonry plugins`: what installed packages bring, and what cannot be loaded."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ...app.installed import describe_plugins
from ...plugins import KINDS
from .output import print_document, print_line
from .tables import Column, print_table


def plugins(*, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """List the strategies, tools, verifiers and models that installed packages bring, each loaded once to see.

    Parameters
    ----------
    json
        Print one JSON document on standard output and nothing else.
    """
    rows = describe_plugins()
    if json:
        print_document({"plugins": rows})
        return 0
    if not rows:
        print_line("No installed package brings anything for Reasonry, or REASONRY_PLUGINS is off.")
        return 0
    print_table(
        (
            Column("KIND"),
            Column("NAME"),
            Column("VERSION", rank=1),
            Column("LOADED", narrowest=20, wraps=True),
        ),
        [
            (KINDS[row["kind"]], row["name"], row["version"], "yes" if row["loaded"] else f"no: {row['why']}")
            for row in rows
        ],
    )
    return 0
