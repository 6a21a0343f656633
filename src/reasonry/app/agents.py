"""What an agent or a request may have the app do: name what the operator listed, and nothing else.

Shared by the surfaces that are not the operator's own.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..core.budget import Budget
from ..engine.engine import Order, RecordedRun
from ..engine.journal import CALLER, ParticipantNames
from ..engine.named_prices import Prices
from ..engine.policy import Performers
from ..errors import NotFoundError, UsageError
from ..records import RequestKey
from .agent_calls import AnswerCoached, ForkRun, ListedParts, ResumeRun
from .allow_list import ARITHMETIC, OFFLINE, AllowList, read_allow_list
from .participants import Participants
from .use_cases import RunRequest
from .wiring import App

T = TypeVar("T")

CAME_TO_ITS_END = (
    "The run came to an end of its own, so there is nothing to go on with; fork it to try another way."
)
OWN_RECORD = (
    "The run writes a session of its own, `session_id`; the thoughts it began with are those of `from_session`, which "
    "stays as it is."
)


class AgentAccess:
    """The app as agents may use it.

    What stands in the way of a listed file is said in the log, not to the agent.

    Raises:
        UsageError: A setting lists what cannot be.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.allowed: AllowList = read_allow_list(app.environ)
        Prices.from_environ(app.environ)
        self._tools: dict[str, Sequence[Any]] = {}

    @property
    def has_model(self) -> bool:
        """Whether driven runs are offered: the operator listed a model, or holds a provider's key."""
        return bool(self.allowed.models) or self.app.has_model

    def complete(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool's input schema with the names that are listed, and without arguments that have none."""
        allowed = self.allowed
        names = {
            "model": {"type": "string", "enum": allowed.model_names},
            "verifier": self._verifier_schema(),
            "tools": _names_schema(allowed.tools),
            "documents": _names_schema(allowed.documents),
        }
        members = {name: names.get(name, member) for name, member in schema["properties"].items()}
        properties = {name: member for name, member in members.items() if member is not None}
        return {**schema, "properties": properties}

    def _verifier_schema(self) -> dict[str, Any]:
        verifiers = list(self.allowed.verifiers)
        described = {"description": ", ".join([f"{ARITHMETIC}TARGET", *verifiers])}
        arithmetic = {"type": "string", "pattern": f"^{ARITHMETIC}"}
        if not verifiers:
            return {**described, **arithmetic}
        return {**described, "anyOf": [arithmetic, {"type": "string", "enum": verifiers}]}

    async def order(self, request: RunRequest) -> tuple[Order, Performers]:
        """Turn what a request asks for into an order; raises as `App.receive`, and where something is not listed."""
        try:
            return await self._censor_errors(self.app.receive(request, self.admit))
        except NotFoundError as error:
            named = (request.session or "")[:100]
            message = f"there is no session {named!r}; list the sessions to see which there are"
            raise NotFoundError(message, **error.details) from None

    async def coach_start(self, request: RunRequest) -> dict[str, Any]:
        """Start a coached run; raises as `order`."""
        order, performers = await self.order(replace(request, coached=True))
        document = await self._censor_errors(self.app.coach(brief=True).start(order, performers))
        if order.from_session is None:
            return document
        notes = [*filter(None, [document.get("note")]), OWN_RECORD]
        return {**document, "note": " ".join(notes), "from_session": order.from_session}

    async def admit(self, named: Participants) -> Participants:
        """Return who may work on a run of those that are named: what the operator lists by these names.

        Raises:
            UsageError: A name is not listed.
        """
        if not named.tools:
            return self._look_up(named)
        return await self.app.pool.run_in_thread(lambda: self._look_up(named))

    async def coach_answer(
        self,
        run_id: str,
        call: AnswerCoached,
        *,
        says_all: bool = False,
        take: Callable[..., Awaitable[dict[str, Any]]] | None = None,
    ) -> dict[str, Any]:
        """Take answers to a coached run, which works with the listed verifier and tools it began with.

        Args:
            take: What takes them in place of `App.coach_answer`.
            says_all: As in `Coach.answer`.

        Raises:
            UsageError: The run's verifier is not listed (any more).
        """
        vet = self._vet(call, f"reasonry coach answer {run_id}")
        take = take or self.app.coach_answer
        return await self._censor_errors(take(run_id, call.answers, vet=vet, brief=True, says_all=says_all))

    async def coach_resume(
        self, run_id: str, call: ResumeRun, budget: Budget | None = None
    ) -> dict[str, Any]:
        """Take a run up again, whoever drove it, to be answered by the caller.

        Args:
            budget: Its limits, where they are more than the call can say.

        Raises:
            UsageError: The run's verifier is not listed, or a tool it works with is not named or not listed.
        """
        if call.has_limits:
            budget = call.budget_after((await self.app.engine.recorded_run(run_id)).budget)
        vet = self._vet(call, f"reasonry coach resume {run_id}")
        document = await self._censor_errors(
            self.app.coach_take_over(run_id, vet=vet, budget=budget, brief=True)
        )
        return document if document["status"] != "done" else {**document, "note": CAME_TO_ITS_END}

    async def coach_fork(
        self,
        source: RecordedRun,
        call: ForkRun,
        budget: Budget | None = None,
        reworded: Mapping[str, str] | None = None,
        key: RequestKey | None = None,
    ) -> tuple[dict[str, Any], bool]:
        """Start a coached run from a point of another; raises as `coach_resume`.

        Args:
            budget: As in `coach_resume`.
            reworded: As in `Engine.fork`.
            key: As in `Engine.accept_once`.

        Returns:
            With where it stands, whether it is new.
        """
        vet = self._vet(call, f"reasonry coach fork {source.row.run_id}")
        limits = call.budget_after(source.budget) if budget is None else budget
        fork = self.app.coach_fork(
            source, call.at, call.options, limits, vet, brief=True, reworded=reworded, key=key
        )
        return await self._censor_errors(fork)

    async def participants_again(
        self, source: RecordedRun, named: ListedParts, model: str | None = None
    ) -> Participants:
        """Return who may drive a run on, or a fork of it: who is named, else who its record names, if listed now.

        Raises:
            UsageError: Someone is not listed.
        """
        begun, recorded = source.begun, source.participants
        listed = {OFFLINE, *self.allowed.models.values(), *self.allowed.models}
        if self.allowed.default_model is None and recorded.model not in listed:
            listed.update(await self.app.pool.run_in_thread(lambda: self._offered_models(begun.problem)))
        for role in ("model", "judge_model", "draft_model"):
            spec = getattr(recorded, role)
            if spec and spec not in listed and not (role == "model" and (model or spec == CALLER)):
                raise UsageError(
                    f"the {role.replace('_', ' ')} of this run is not listed here (REASONRY_MODELS)"
                    + ("; name another" if role == "model" else ""),
                    option="model",
                    choices=self.allowed.model_names,
                )
        was_coached = recorded.model == CALLER
        spec = self.allowed.model(model) if model is not None or was_coached else None
        if spec is None and was_coached:
            message = "name the model that is to answer the questions of this run"
            raise UsageError(message, option="model", choices=self.allowed.model_names)
        vet = self._vet(named, f"reasonry runs resume {source.row.run_id}")

        def open_parts() -> Participants:
            return replace(vet(recorded), model=spec)

        return await self._censor_errors(self.app.pool.run_in_thread(open_parts))

    def _offered_models(self, problem: str) -> tuple[str, ...]:
        """Return the model that the environment offers for a problem where the operator listed none; if any."""
        from ..models.choose import default_model

        try:
            return default_model(problem, self.app.environ)[:1]
        except UsageError:
            return ()

    def _vet(self, named: ListedParts, operators_way: str) -> Callable[[ParticipantNames], Participants]:
        """Return what says who may work on a run as it is recorded: what is listed now, and nothing else."""

        def vet(recorded: ParticipantNames) -> Participants:
            verifier = recorded.verifier
            if named.verifier is None and verifier is not None and not self.allowed.has_verifier(verifier):
                raise UsageError(
                    "this run's verifier is not listed for agents here (REASONRY_VERIFIERS); its operator can go on "
                    f"with it: {operators_way}",
                    option="verifier",
                )
            return self._look_up(named.participants())

        return vet

    def _look_up(self, named: Participants) -> Participants:
        allowed = self.allowed
        tools = [tool for tool in named.tools if isinstance(tool, str)]
        loaded = [tool for spec in allowed.all_of("tools", tools) for tool in self._load(spec)]
        return Participants(
            model=allowed.model(named.model),
            verifier=allowed.verifier(named.verifier),
            tools=[*loaded, *(tool for tool in named.tools if not isinstance(tool, str))],
            context=allowed.all_of("documents", named.context),
            listed_tools=tuple(tools),
            listed_documents=named.context,
        )

    def recorded_participants(self, recorded: ParticipantNames) -> Participants:
        """Return who works on a run with these in its record, where nobody says so anew: its tools as listed now.

        Raises:
            UsageError: One of them is not listed any more.
        """
        named = Participants(tools=recorded.listed_tools, context=recorded.listed_documents)
        return replace(self._look_up(named), model=None, verifier=None)

    def _load(self, spec: str) -> Sequence[Any]:
        from ..tools.catalog import load_tools

        if spec not in self._tools:
            self._tools[spec] = load_tools(spec, self.app.environ)
        return self._tools[spec]

    async def _censor_errors(self, work: Awaitable[T]) -> T:
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
            if "file" not in error.details and not _is_listed_plugin(error):
                raise
            logging.getLogger("reasonry").warning("an agent named what cannot be used: %s", error.message)
            option = error.details.get("option", "model")
            option = "documents" if option == "context" else option
            raise UsageError(
                f"what the operator listed ({option}) cannot be used at present; the server's log says why",
                option=option,
            ) from None


def _is_listed_plugin(error: UsageError) -> bool:
    # A strategy is named by the agent itself; there is no list of them.
    return "plugin" in error.details and error.details.get("option") != "strategy"


def _names_schema(listed: Collection[str]) -> dict[str, Any] | None:
    return {"type": "array", "items": {"type": "string", "enum": list(listed)}} if listed else None
