"""`reasonry mcp`: the MCP server over standard input and output."""

from __future__ import annotations

import sys

from .output import print_notes
from .settings import Common, Listed, SessionRules

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
