"""What an agent or a request may have the app do: name what the operator listed, and nothing else.

Shared by the surfaces that are not the operator's own.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..allow_list import ARITHMETIC, AllowList
from ..app import App, Team
from ..core.budget import Budget
from ..engine.engine import Order
from ..engine.journal import CALLER, Folded
from ..engine.policy import Performers
from ..errors import UsageError

T = TypeVar("T")

MAX_NAMES = 100
"""How many tools, or documents, one request may name."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """Who and what a request names for its run, by the names of the allow-list."""

    model: str | None = None
    verifier: str | None = None
    tools: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> Named:
        """Read the arguments `model`, `verifier`, `tools` and `documents`, where they are there.

        Raises:
            UsageError: One is not text, or not a list of texts.
        """
        return cls(
            model=_text(arguments, "model"),
            verifier=_text(arguments, "verifier"),
            tools=_texts(arguments, "tools"),
            documents=_texts(arguments, "documents"),
        )


class AgentAccess:
    """The app as agents may use it.

    What stands in the way of a listed file is said in the log, not to the agent.

    Raises:
        UsageError: A setting lists what cannot be.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.allowed: AllowList = app.allow_list()
        app.usual_prices()
        self._tools: dict[str, Sequence[Any]] = {}

    @property
    def has_model(self) -> bool:
        """Whether driven runs are offered: the operator listed a model, or holds a provider's key."""
        return bool(self.allowed.models) or self.app.has_model

    def model_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the argument `model`."""
        return {"type": "string", "enum": self.allowed.model_names}

    def check_schemas(self) -> dict[str, Any]:
        """Return the JSON schemas of the other arguments that name something; only of what may be named."""
        allowed, form = self.allowed, f"{ARITHMETIC}TARGET"
        known = ", ".join([form, *allowed.verifiers])
        arithmetic = {"type": "string", "pattern": f"^{ARITHMETIC}"}
        schemas: dict[str, Any] = {
            "verifier": {
                "description": known,
                **(
                    {"anyOf": [arithmetic, {"type": "string", "enum": list(allowed.verifiers)}]}
                    if allowed.verifiers
                    else arithmetic
                ),
            }
        }
        for argument, listed in (("tools", allowed.tools), ("documents", allowed.documents)):
            if listed:
                items = {"type": "string", "enum": list(listed)}
                schemas[argument] = {"type": "array", "items": items}
        return schemas

    async def order(
        self, problem: str, strategy: str, options: Mapping[str, Any], budget: Budget, named: Named
    ) -> tuple[Order, Performers]:
        """Check everything a request asked for; see `App.order`.

        Raises:
            UsageError: Something is wrong with it, or is not listed.
        """
        return await self._veiled(
            self.app.aside(lambda: self.app.order(problem, strategy, options, budget, self._team(named)))
        )

    async def coach_start(
        self, problem: str, strategy: str, options: Mapping[str, Any], budget: Budget, named: Named
    ) -> dict[str, Any]:
        """Start a coached run; see `App.coach_start`."""
        team = await self._veiled(self.app.aside(lambda: self._team(named)))
        return await self._veiled(self.app.coach_start(problem, strategy, options, budget, team))

    async def coach_answer(self, run_id: str, answers: Sequence[Any], named: Named) -> dict[str, Any]:
        """Take answers to a coached run, which works with the listed verifier and tools it began with.

        Raises:
            UsageError: The run's verifier is not listed (any more).
        """

        def vet(run: Folded, _: Team) -> Team:
            recorded = run.crew.verifier
            if named.verifier is None and recorded is not None and not self.allowed.has_verifier(recorded):
                raise UsageError(
                    "this run's verifier is not listed for agents here (REASONRY_VERIFIERS); its operator can go on "
                    f"with it: reasonry coach answer {run_id}",
                    option="verifier",
                )
            return self._team(named)

        return await self._veiled(self.app.coach_answer(run_id, answers, vet=vet))

    def _team(self, named: Named) -> Team:
        allowed = self.allowed
        return Team(
            model=allowed.model(named.model),
            verifier=allowed.verifier(named.verifier),
            tools=[tool for spec in allowed.all_of("tools", named.tools) for tool in self._loaded(spec)],
            context=allowed.all_of("documents", named.documents),
        )

    def _loaded(self, spec: str) -> Sequence[Any]:
        from ..tools.catalog import load_tools

        if spec not in self._tools:
            self._tools[spec] = load_tools(spec)
        return self._tools[spec]

    async def _veiled(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except UsageError as error:
            if error.code == "price_unknown" and CALLER not in error.details["models"]:
                raise UsageError(
                    "the model's price is not known here, so a limit on dollars would hold nothing; limit calls or "
                    "seconds instead, or have the operator name the price (REASONRY_PRICE)",
                    code=error.code,
                    option=error.details["option"],
                ) from None
            if "file" not in error.details:
                raise
            logging.getLogger("reasonry").warning("an agent named what cannot be used: %s", error.message)
            option = error.details.get("option", "model")
            option = "documents" if option == "context" else option
            raise UsageError(
                f"what the operator listed ({option}) cannot be used at present; the server's log says why",
                option=option,
            ) from None


def _text(arguments: Mapping[str, Any], argument: str) -> str | None:
    value = arguments.get(argument)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{argument} must be text", option=argument, field=argument)
    return value.strip() or None if value else None


def _texts(arguments: Mapping[str, Any], argument: str) -> tuple[str, ...]:
    value = arguments.get(argument)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UsageError(f"{argument} must be a list of names", option=argument, field=argument)
    if len(value) > MAX_NAMES:
        raise UsageError(f"{argument} takes {MAX_NAMES} names at most", option=argument, field=argument)
    return tuple(value)
