"""Help: what cyclopts says of a command, and below it the command's example."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from cyclopts import App, Parameter


class CommandLine(App):
    """An app whose help ends with an example."""

    def help_print(
        self,
        tokens: Annotated[str | Iterable[str] | None, Parameter(show=False)] = None,
        *,
        console: Annotated[Any, Parameter(parse=False)] = None,
    ) -> None:
        """Print the help page."""
        tokens = tokens.split() if isinstance(tokens, str) else list(tokens or ())
        super().help_print(tokens, console=console)
        from .examples import read_examples

        command, apps, _ = self.parse_commands(tokens)
        example = read_examples().get(" ".join(name for name in command if not name.startswith("-")))
        if example is not None:
            console = console or apps[-1].console
            for line in ("Example:", "", *example.split("\n")):
                console.print(line, markup=False, highlight=False, no_wrap=True, overflow="ellipsis")
