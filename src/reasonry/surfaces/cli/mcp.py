"""`reasonry mcp`: the MCP server over standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from cyclopts import Parameter

from .output import print_notes
from .settings import Common, SessionRules


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Listed:
    """What agents may name; what is not named here is taken from REASONRY_… variables.

    Args:
        model: The model that is taken where an agent names none, as after `solve --model`.
        models: Another model that agents may name, as SPEC or NAME=SPEC; may be repeated.
        verifiers: A verifier that agents may name besides arithmetic:TARGET, as SPEC or NAME=SPEC; may be repeated.
        tools: Python callables that agents may name, as FILE.py:NAME or NAME=FILE.py:NAME; may be repeated.
        documents: A file that agents may have searched, as FILE or NAME=FILE; may be repeated.
    """

    model: str | None = None
    models: tuple[str, ...] = ()
    verifiers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()

    def overlay(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with what was named laid over it."""
        lists = ("models", "verifiers", "tools", "documents")
        named = {"model": self.model, **{name: ",".join(getattr(self, name)) for name in lists}}
        return {**environ, **{f"REASONRY_{name.upper()}": value for name, value in named.items() if value}}


_IN_A_TERMINAL = (
    "This is Reasonry's MCP server. It waits for an agent that speaks MCP on its standard input; agents start it by "
    "themselves, once they know it.",
    "Tell yours with: reasonry setup (`reasonry setup --help` lists the agents)",
    "Ctrl-C ends it.",
)
"""What is said where a person started the server, and would see nothing."""


def mcp(*, listed: Listed = Listed(), rules: SessionRules = SessionRules(), common: Common = Common()) -> int:
    """Serve MCP over standard input and output until the client leaves."""
    from ..mcp.serve import main

    if sys.stdin.isatty():
        print_notes(_IN_A_TERMINAL)
    main(common.store, listed.overlay(rules.environ()), strategies=common.strategies())
    return 0
