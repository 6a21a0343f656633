"""The composition root: settings in, wired parts out."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..core.problem import with_quoted
from ..core.registry import find_strategy
from ..core.strategy import Strategy
from ..engine.engine import Engine
from ..engine.journal import Begun
from ..engine.policy import Performers, Policy
from ..engine.run import Run
from ..errors import ConflictError, NotFoundError, StoreError, UsageError
from ..guided.session_settings import SessionSettings
from ..guided.sessions import Sessions
from ..guided.stored_sessions import continues_run
from ..masking import SECRETS
from ..records import Store
from .installed import installed_strategies
from .participants import PerformerPool
from .run_thoughts import quote_thoughts, thought_rows
from .use_cases import RunRequest, UseCases

if TYPE_CHECKING:
    from ..stores.row_store import RowStore


class App(UseCases):
    """Everything wired together over one store; what it does with runs is in `UseCases`.

    Args:
        store_spec: A value of `--store`, or a store; None: `REASONRY_STORE`, else the user's data folder.
        environ: None: the environment of this process.
        strategies: By canonical name; None: the registry with those of installed packages.
    """

    def __init__(
        self,
        store_spec: str | Store | None = None,
        policy: Policy | None = None,
        environ: Mapping[str, str] | None = None,
        strategies: Mapping[str, Strategy[Any, Any]] | None = None,
    ) -> None:
        self.environ = os.environ if environ is None else environ
        SECRETS.keep_environment(self.environ)
        self._owned = AsyncExitStack()
        """Closes what this app has opened."""
        if store_spec is None or isinstance(store_spec, str):
            from ..stores import open_store

            store_spec = open_store(store_spec or self.environ.get("REASONRY_STORE") or None)
            self._owned.push_async_callback(store_spec.close)
        self.store = cast("RowStore", store_spec)
        """A store that was handed in may lack what only servers and operators need."""
        policy = policy or Policy()
        policy.rates.shared = getattr(self.store, "provider_limits", None)
        registry = installed_strategies(self.environ) if strategies is None else strategies
        engine = Engine(self.store, registry, policy, thought_rows, self._tell_verdicts)
        super().__init__(engine, PerformerPool(self.environ))
        self._owned.push_async_callback(self.pool.close)
        self._is_one_owners = False

    def for_owner(self, owner: str) -> App:
        """Return this app as one owner sees it: of runs and sessions, only those of this owner exist.

        Args:
            owner: Empty: the operator.
        """
        scoped = copy.copy(self)
        scoped.store = self.store.of_owner(owner)
        scoped.engine = Engine(
            scoped.store, self.strategies, self.engine.policy, thought_rows, scoped._tell_verdicts
        )
        scoped._owned, scoped._is_one_owners = AsyncExitStack(), True
        return scoped

    async def close(self) -> None:
        """Close what the pool has opened, and the store, unless they are another app's or were handed in open."""
        await self._owned.aclose()

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def has_model(self) -> bool:
        """Whether the environment names a model or holds a provider's key."""
        from ..models.choose import is_configured

        return is_configured(self.environ)

    def sessions(self, settings: SessionSettings | None = None) -> Sessions:
        """Return the guided sessions of the store; without settings, with those of the environment."""
        settings = settings or SessionSettings.from_environ(self.environ)
        directory = _working_directory()
        return Sessions(
            self.store,
            self.strategies,
            settings,
            directory=directory,
            chooses_ids=not self._is_one_owners,
        )

    async def receive(self, request: RunRequest) -> tuple[Begun, Performers]:
        """Turn what somebody asks for into an order; nothing is written or paid.

        Raises:
            UsageError: Something is wrong with the request; the message says what and what is legal.
            NotFoundError: There is no such session.
            ToolError: A tool server does not answer.
        """
        problem, session = await self._problem_after(request)
        with self.fit_errors():
            participants = await self.equip(request.participants, request.budget)
            whole = replace(request, problem=problem, session=session, participants=participants)
            names_files = participants.tools or participants.context or participants.verifier
            if not names_files and self.pool.is_open(participants.model):
                # Nothing is read, and a thread would take longer than the work.
                return self.order(whole)
            return await self.pool.run_in_thread(lambda: self.order(whole))

    async def coach_start(self, request: RunRequest, *, brief: bool = False) -> dict[str, Any]:
        """Start a coached run; `brief` as in `Coach`."""
        order, performers = await self.receive(replace(request, coached=True))
        return await self.coach(brief=brief).start(order, performers)

    async def delete_run(self, run_id: str) -> dict[str, Any]:
        """Delete a run that has ended, and the session of its thoughts.

        Raises:
            ConflictError: It has not ended.
        """
        row = await self.store.run(run_id)
        if row.status == "active":
            raise ConflictError(f"run {run_id} has not ended; cancel it first", run_id=run_id)
        return {"run_id": run_id, **await self.sessions().delete({"session_id": row.session_id})}

    async def _problem_after(self, request: RunRequest) -> tuple[str, str | None]:
        """Return the problem of a run that begins with the thoughts of a session, quoted below it; and its id."""
        problem = request.problem
        claims = request.options.get("claims")
        if problem is None and request.session is None and isinstance(claims, list):
            problem = "\n".join(map(str, claims))
        strategy = request.strategy
        named = find_strategy(strategy, self.strategies) if isinstance(strategy, str) else strategy
        task = getattr(named, "task_after_thoughts", "")
        if request.session is None:
            if problem is None:
                wanted = "what to refute: a problem, claims or a session" if task else "the problem to solve"
                raise UsageError(f"problem is missing; give {wanted}", field="problem")
            return problem, None
        sessions = self.sessions().stored
        row = await sessions.row(request.session)
        session_id, thoughts = row.session_id, await sessions.thoughts(row.session_id)
        if not thoughts:
            raise UsageError(f"session {session_id} has no thoughts to begin with", field="session_id")
        if problem is not None or task:
            return with_quoted(problem or task, quote_thoughts(thoughts)), session_id
        if continues_run(row):
            message = f"session {session_id} begins with the thoughts of a run; give the problem in `problem`"
            raise UsageError(message, field="problem")
        return with_quoted(thoughts[0].text, quote_thoughts(thoughts[1:])), session_id

    async def _tell_verdicts(self, run: Run) -> None:
        """Have the session whose thoughts a run has judged tell its thinker of the verdicts."""
        conclusion, session_id = run.snapshot.conclusion, run.begun.from_session
        if (
            conclusion is not None
            and session_id is not None
            and (claims := conclusion.document.get("claims"))
        ):
            with contextlib.suppress(NotFoundError, StoreError):
                await self.sessions().stored.take_verdicts(session_id, claims)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        # It was deleted.
        return ""
