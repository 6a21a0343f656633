"""The app as agents and requests may use it: they name what the operator listed, and nothing else.

Shared by the surfaces that are not the operator's own.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from ..engine.engine import RecordedRun
from ..engine.journal import CALLER, ParticipantNames
from ..engine.named_prices import Prices
from ..engine.run import Run
from ..errors import UsageError
from ..guided.tool_arguments import not_a_choice
from .allow_list import ARITHMETIC, OFFLINE, AllowList
from .participants import Participants
from .wiring import App


class AgentApp(App):
    """An app over the same parts that looks names up in the operator's lists.

    What stands in the way of a listed file is said in the log, not to the agent.

    Args:
        app: The operator's, which closes what it has opened.

    Raises:
        UsageError: A setting lists what cannot be.
    """

    def __init__(self, app: App) -> None:
        vars(self).update(vars(app))
        self._owned = AsyncExitStack()
        self.allowed = AllowList.from_environ(app.environ)
        Prices.from_environ(app.environ)
        described = app.environ.get("REASONRY_DESCRIPTION", "").strip().lower() or "full"
        if described not in ("full", "short"):
            raise not_a_choice("REASONRY_DESCRIPTION", described, ("full", "short"))
        self.describes_briefly = described == "short"
        """Whether agents are told of the thinking tool in few words."""

    @property
    def has_model(self) -> bool:
        """Whether driven runs are offered: the operator listed a model, or holds a provider's key."""
        return bool(self.allowed.models) or super().has_model

    def complete(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool's input schema with the names that are listed, and without arguments that have none."""
        allowed, verifiers = self.allowed, list(self.allowed.verifiers)
        arithmetic = {"type": "string", "pattern": f"^{ARITHMETIC}"}
        either = {"anyOf": [arithmetic, {"type": "string", "enum": verifiers}]} if verifiers else arithmetic
        names = {
            "model": {"type": "string", "enum": allowed.model_names},
            "verifier": {"description": ", ".join([f"{ARITHMETIC}TARGET", *verifiers]), **either},
            "tools": _names_schema(allowed.tools),
            "documents": _names_schema(allowed.documents),
        }
        members = {name: names.get(name, member) for name, member in schema["properties"].items()}
        properties = {name: member for name, member in members.items() if member is not None}
        return {**schema, "properties": properties}

    # -- who may work on a run

    def listed_model(self, name: str) -> str:
        """Return the model that the operator lists by a name.

        Raises:
            UsageError: It is not listed.
        """
        return self.allowed.model(name) or name

    async def admit(
        self, named: Participants, source: Run | RecordedRun | None = None, *, coached: bool = False
    ) -> Participants:
        """Return the named or recorded participants of a run, as far as the operator lists them now.

        Raises:
            UsageError: A name is not listed (any more).
        """
        recorded = ParticipantNames() if source is None else source.participants
        verifier, was_coached = recorded.verifier, recorded.model == CALLER
        if named.verifier is None and verifier is not None and not self.allowed.has_verifier(verifier):
            raise UsageError(
                "this run's verifier is not listed for agents here (REASONRY_VERIFIERS); its operator can continue "
                "the run at the command line",
                option="verifier",
            )
        look_up = partial(self._look_up, named)
        admitted = await self.pool.run_in_thread(look_up) if named.tools else look_up()
        if source is None or coached:
            return admitted
        listed = {OFFLINE, *self.allowed.models.values(), *self.allowed.models}
        if self.allowed.default_model is None and recorded.model not in listed:
            listed.add(
                await self.pool.run_in_thread(lambda: self.pool.offered_model(source.begun.problem))
                or OFFLINE
            )
        roles = {role: getattr(recorded, role) for role in ("model", "judge_model", "draft_model")}
        names, takes_model = self.allowed.model_names, named.model is not None or was_coached
        for role, spec in [*roles.items(), *(("seat", seat) for seat in recorded.seats)]:
            if spec and spec not in listed and not (role == "model" and takes_model):
                message = f"the {role.replace('_', ' ')} of this run is not listed here (REASONRY_MODELS)"
                message += "; name another" if role == "model" else ""
                raise UsageError(message, option="model", choices=names)
        if was_coached and admitted.model is None:
            message = "name the model that answers the questions of this run"
            raise UsageError(message, option="model", choices=names)
        return admitted if takes_model else replace(admitted, model=None)

    def _look_up(self, named: Participants) -> Participants:
        allowed = self.allowed
        tools = [tool for tool in named.tools if isinstance(tool, str)]
        loaded = [tool for spec in allowed.all_of("tools", tools) for tool in self.pool.load(spec)]
        return Participants(
            model=allowed.model(named.model),
            verifier=allowed.verifier(named.verifier),
            tools=[*loaded, *(tool for tool in named.tools if not isinstance(tool, str))],
            context=allowed.all_of("documents", named.context),
            listed_tools=tuple(tools),
            listed_documents=tuple(named.context),
        )

    @contextmanager
    def fit_errors(self) -> Generator[None]:
        """Have errors say what an agent may be told; what concerns the operator's files goes to the log."""
        try:
            yield
        except UsageError as error:
            option = error.details.get("option", "model")
            if error.code == "price_unknown" and CALLER not in error.details["models"]:
                message = (
                    "the model's price is not known here, so a limit on dollars would hold nothing; limit calls or "
                    "seconds instead, or have the operator name the price (REASONRY_PRICE)"
                )
                raise UsageError(message, code=error.code, option=option) from None
            if not error.is_operators:
                raise
            logging.getLogger("reasonry").warning("an agent named what cannot be used: %s", error.message)
            option = "documents" if option == "context" else option
            message = (
                f"what the operator listed ({option}) cannot be used at present; the server's log says why"
            )
            raise UsageError(message, option=option) from None


def _names_schema(listed: Collection[str]) -> dict[str, Any] | None:
    return {"type": "array", "items": {"type": "string", "enum": list(listed)}} if listed else None
