"""The rights of callers: the operator may name any part; agents and HTTP requests may name only listed parts."""

import logging
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from msgspec.structs import replace

from ..engine.engine import RecordedRun
from ..engine.journal import CALLER, ParticipantNames
from ..engine.prices import Prices
from ..engine.run import Run
from ..errors import UsageError
from ..guided.tool_arguments import not_a_choice
from .allow_list import OFFLINE, AllowList
from .participants import Participants, PerformerPool


class Rights:
    """The rights of the operator, who may name any part (model, tool, …) and may see all errors."""

    allowed = AllowList()
    describes_briefly = False
    """Whether the thinking tool has a short description for agents."""

    def __init__(self, pool: PerformerPool) -> None:
        self.pool = pool

    @property
    def has_model(self) -> bool:
        """Whether the allow list or the environment names a model. A provider's key also counts."""
        from ..models.choose import is_configured

        return bool(self.allowed.models) or is_configured(self.pool.environ)

    def model(self, name: str) -> str:
        """Return the model that a caller names, in the form of the option `--model`.

        Raises:
            UsageError: The name is not listed.
        """
        return name

    async def admit(
        self, named: Participants, source: Run | RecordedRun | None = None, *, coached: bool = False
    ) -> Participants:
        """Return the participants of a run, after a check that the caller may use them.

        Args:
            source: The run to continue or fork. None for a new run.
            coached: Whether the caller answers the questions from now on.

        Raises:
            UsageError: A named or recorded participant is not on the operator's list.
        """
        return named

    def fit_errors(self) -> AbstractContextManager[None]:
        """Return a context manager that reduces errors to the details that the caller may see."""
        return nullcontext()


class ListedRights(Rights):
    """The rights of agents and HTTP requests, which may name only parts that the operator listed.

    Raises:
        UsageError: A setting has an invalid entry.
    """

    def __init__(self, pool: PerformerPool) -> None:
        super().__init__(pool)
        self.allowed = AllowList.from_environ(pool.environ)
        Prices.from_environ(pool.environ)
        described = pool.environ.get("REASONRY_DESCRIPTION", "").strip().lower() or "full"
        if described not in ("full", "short"):
            raise not_a_choice("REASONRY_DESCRIPTION", described, ("full", "short"))
        self.describes_briefly = described == "short"

    def model(self, name: str) -> str:
        """See `Rights`. Only listed names are allowed."""
        return self.allowed.model(name) or name

    async def admit(
        self, named: Participants, source: Run | RecordedRun | None = None, *, coached: bool = False
    ) -> Participants:
        """See `Rights`. Only listed participants are allowed."""
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
        takes_model = named.model is not None or was_coached
        await self._check_models(source, takes_model=takes_model)
        if was_coached and admitted.model is None:
            message = "name the model that answers the questions of this run"
            raise UsageError(message, option="model", choices=self.allowed.model_names)
        return admitted if takes_model else replace(admitted, model=None)

    async def _check_models(self, source: Run | RecordedRun, *, takes_model: bool) -> None:
        """Raise `UsageError` if the run would continue with a recorded model that the operator does not list."""
        recorded = source.participants
        listed = {OFFLINE, *self.allowed.models.values(), *self.allowed.models}
        if self.allowed.default_model is None and recorded.model not in listed:
            listed.add(
                await self.pool.run_in_thread(lambda: self.pool.offered_model(source.begun.problem))
                or OFFLINE
            )
        roles = {role: getattr(recorded, role) for role in ("model", "judge_model", "draft_model")}
        for role, spec in [*roles.items(), *(("seat", seat) for seat in recorded.seats)]:
            if spec and spec not in listed and not (role == "model" and takes_model):
                message = f"the {role.replace('_', ' ')} of this run is not listed here (REASONRY_MODELS)"
                message += "; name another" if role == "model" else ""
                raise UsageError(message, option="model", choices=self.allowed.model_names)

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
        """See `Rights`. Faults in the operator's files go to the log, and the caller does not see them."""
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
