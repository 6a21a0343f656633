"""`reasonry serve` and `reasonry mcp`: the servers, over HTTP and over standard input and output."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec import structs

from ...app.wiring import App
from ...engine.policy import Policy
from ...errors import UsageError
from ...extras import check_extra
from ...supervisor import CONCURRENCY, MAX_QUEUED
from ..present import masked_output
from .arguments import WholeNumber
from .output import print_notes
from .settings import AgentSettings, Common, ProviderRates, overlay

_IN_A_TERMINAL = (
    "This is Reasonry's MCP server. It waits for an agent that speaks MCP on its standard input; agents start it by "
    "themselves, once they know it.",
    "Tell yours with: reasonry setup (`reasonry setup --help` lists the agents)",
    "Ctrl-C ends it.",
)
"""What is said where a person started the server, and would see nothing."""


def mcp(*, agents: AgentSettings = AgentSettings(), common: Common = Common()) -> int:
    """Serve MCP over standard input and output until the client leaves."""
    from ..mcp.serve import main

    if sys.stdin.isatty():
        print_notes(_IN_A_TERMINAL)
    main(common.store, agents.environ(), strategies=common.strategies())
    return 0


def serve(
    *,
    host: str = "127.0.0.1",
    port: WholeNumber = 8080,
    tokens_file: Path | None = None,
    allowed_hosts: str | None = None,
    usd_a_day: str | None = None,
    requests_per_minute: WholeNumber | None = None,
    max_runs: WholeNumber | None = None,
    concurrency: Annotated[WholeNumber, Parameter(validator=Number(gte=0))] = CONCURRENCY,
    max_queued: WholeNumber = MAX_QUEUED,
    open: bool = False,
    agents: AgentSettings = AgentSettings(),
    rates: ProviderRates = ProviderRates(),
    common: Common = Common(),
) -> int:
    """Serve the page, the API, the OpenAI-compatible endpoint and MCP over HTTP until a signal comes.

    Parameters
    ----------
    host
        The address to listen at. One that other machines reach needs tokens.
    port
        The port; 0: any that is free.
    tokens_file
        A file of PRINCIPAL=TOKEN lines; then each request needs a token. Default: REASONRY_TOKENS.
    allowed_hosts
        Names by which clients call the server, such as those of a proxy before it; they need tokens. Default:
        REASONRY_ALLOWED_HOSTS.
    usd_a_day
        What runs may cost in a day: USD for each principal, or PRINCIPAL=USD,…. Default: REASONRY_USD_A_DAY.
    requests_per_minute
        Of one principal; more are refused.
    max_runs
        Runs that are driven at once; more are refused.
    concurrency
        Jobs, such as runs begun with POST /api/runs, that it drives at once; 0: none, a `reasonry worker` drives them.
    max_queued
        Jobs that wait; more are refused.
    open
        Show the page in the browser.
    """
    check_extra("server", "reasonry serve")
    from ..http import settings as settings_
    from ..http.serve import make_loop
    from ..http.serve import serve as serve_http

    policy = Policy(rates=rates.limits())
    named_here = {"allowed_hosts": allowed_hosts, "usd_a_day": usd_a_day}
    environ = overlay(agents.environ(), named_here)
    # What this process starts has no use for them.
    tokens_text = environ.pop(settings_.TOKENS, None)
    os.environ.pop(settings_.TOKENS, None)
    settings = settings_.ServerSettings(
        host=host,
        port=port,
        tokens=_read_tokens(tokens_file, tokens_text),
        allowed_hosts=settings_.read_allowed_hosts(environ.get(settings_.ALLOWED_HOSTS, "")),
        usd_a_day=settings_.read_usd_a_day(environ.get(settings_.USD_A_DAY, "")),
        concurrency=concurrency,
        max_queued=max_queued,
    )
    limits = {"max_runs": max_runs, "requests_per_minute": requests_per_minute}
    named = {name: value for name, value in limits.items() if value is not None}
    settings = structs.replace(settings, **named)
    settings.check()

    def tell(address: str) -> None:
        if common.as_data:
            common.show({"url": address}, "")
        print_notes([f"Reasonry is at {address} (Ctrl-C ends it)"])
        if open:
            webbrowser.open(address)

    async def work(app: App) -> None:
        await serve_http(app, settings, tell)

    with masked_output(environ):
        common.do(work, policy, environ, make_loop)
    return 0


def _read_tokens(file: Path | None, text: str | None) -> dict[bytes, str]:
    from ..http.settings import TOKENS, read_tokens, read_tokens_file

    if file is not None and text is not None:
        message = f"--tokens-file and {TOKENS} are both set: use one of them"
        raise UsageError(message, option="tokens_file")
    if file is not None:
        return read_tokens_file(file)
    return {} if text is None else read_tokens(text, TOKENS)
