"""`reasonry mcp`: the MCP server over standard input and output."""

from __future__ import annotations

from .settings import Common, SessionRules


def mcp(*, rules: SessionRules = SessionRules(), common: Common = Common()) -> int:
    """Serve MCP over standard input and output until the client leaves."""
    from ..mcp import main

    main(common.store, rules.environ(), strategies=common.strategies())
    return 0
