"""`reasonry serve`: the server over HTTP."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

from msgspec import structs

from ...app.wiring import App
from ...engine.policy import Policy
from ...errors import UsageError
from ...extras import check_extra
from ...supervisor import CONCURRENCY, MAX_QUEUED
from ..present import masked_output
from .output import print_document, print_notes
from .settings import Common, Listed, ProviderRates, SessionRules, run_async, with_app
from .whole_numbers import WholeNumber


def serve(
    *,
    host: str = "127.0.0.1",
    port: WholeNumber = 8080,
    tokens_file: Path | None = None,
    allowed_hosts: str | None = None,
    usd_a_day: str | None = None,
    requests_per_minute: WholeNumber | None = None,
    max_runs: WholeNumber | None = None,
    concurrency: WholeNumber = CONCURRENCY,
    max_queued: WholeNumber = MAX_QUEUED,
    open: bool = False,
    listed: Listed = Listed(),
    rates: ProviderRates = ProviderRates(),
    rules: SessionRules = SessionRules(),
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

    if concurrency < 0:
        raise UsageError(f"--concurrency must be at least 0, got {concurrency}", option="concurrency")
    policy = Policy(rates=rates.limits())
    environ = listed.overlay(rules.environ())
    # What this process starts has no use for them.
    tokens_text = environ.pop(settings_.TOKENS, None)
    os.environ.pop(settings_.TOKENS, None)
    if tokens_file is not None and tokens_text is not None:
        raise UsageError(
            f"--tokens-file and {settings_.TOKENS} are both set: use one of them", option="tokens_file"
        )
    limits = {"max_runs": max_runs, "requests_per_minute": requests_per_minute}
    settings = settings_.ServerSettings(
        host=host,
        port=port,
        tokens=settings_.read_tokens_file(tokens_file)
        if tokens_file is not None
        else {}
        if tokens_text is None
        else settings_.read_tokens(tokens_text, settings_.TOKENS),
        allowed_hosts=settings_.read_allowed_hosts(
            environ.get(settings_.ALLOWED_HOSTS, "") if allowed_hosts is None else allowed_hosts
        ),
        usd_a_day=settings_.read_usd_a_day(
            environ.get(settings_.USD_A_DAY, "") if usd_a_day is None else usd_a_day
        ),
        concurrency=concurrency,
        max_queued=max_queued,
    )
    settings = structs.replace(
        settings, **{name: value for name, value in limits.items() if value is not None}
    )
    settings.check()

    def tell(address: str) -> None:
        if common.json:
            print_document({"url": address})
        print_notes([f"Reasonry is at {address} (Ctrl-C ends it)"])
        if open:
            webbrowser.open(address)

    async def work(app: App) -> None:
        await serve_http(app, settings, tell)

    with masked_output(environ):
        run_async(with_app(common.app(policy, environ), work), make_loop)
    return 0
