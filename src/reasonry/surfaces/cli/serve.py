"""`reasonry serve`: the server over HTTP."""

from __future__ import annotations

import os

from ...app import App
from ...extras import check_extra
from ..present import masked_output
from .output import print_notes
from .settings import Common, Listed, run_async, with_app


def serve(
    *, host: str = "127.0.0.1", port: int = 8080, listed: Listed = Listed(), common: Common = Common()
) -> int:
    """Serve the page, the API, the OpenAI-compatible endpoint and MCP over HTTP until a signal comes.

    Parameters
    ----------
    host
        The address to listen at.
    port
        The port.
    """
    check_extra("server", "reasonry serve")
    from ..http.serve import serve as serve_http
    from ..http.settings import ServerSettings

    settings = ServerSettings(host=host, port=port)
    settings.check()
    environ = listed.overlay(os.environ)

    async def work(app: App) -> None:
        await serve_http(app, settings)

    with masked_output(environ):
        print_notes([f"Reasonry is at http://{host}:{port}"])
        run_async(with_app(common.app(environ=environ), work))
    return 0
