"""The arguments of the tools `coach` and `solve`, under the names that callers use.

The schemas and the readers of the tools are built from these Structs. For `model`, `verifier`, `tools` and `documents`,
a call may give only names that the operator listed. `AllowList` adds these names to the schema and refuses other names.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs

from ..core.budget import Amount, Budget, Count
from ..errors import UsageError
from ..guided.session_calls import read_action, read_form
from ..guided.tool_arguments import name_arguments, unknown_arguments
from ..strategies import DEFAULT_STRATEGY, REFUTER
from .participants import Participants
from .requests import RunRequest

MAX_NAMES = 100
"""The most tools in one request, and also the most documents."""
MAX_PAGE_ENTRIES = 100

Names = Annotated[tuple[str, ...], Meta(max_length=MAX_NAMES)]
Options = Annotated[dict[str, Any], Meta(description="The strategy's options")]
PageSize = Annotated[int, Meta(ge=1, le=MAX_PAGE_ENTRIES)]


def named_limits(call: Struct) -> dict[str, Any]:
    """Return the limits that a call names, by unit (`calls`, `usd`, `seconds`)."""
    limits = {unit: getattr(call, f"max_{unit}", None) for unit in ("calls", "usd", "seconds")}
    return {unit: limit for unit, limit in limits.items() if limit is not None}


class ListedParts(Struct, frozen=True, kw_only=True):
    """The verifier, tools and documents that a call names, each from the operator's lists."""

    verifier: str | None = None
    tools: Names = ()
    documents: Names = ()

    def participants(self) -> Participants:
        """Return the participants that the call names."""
        model = getattr(self, "model", None)
        return Participants(model=model, verifier=self.verifier, tools=self.tools, context=self.documents)


class AskedRun(ListedParts, frozen=True, kw_only=True):
    """A request for a run, under the names that callers use."""

    problem: str | None = None
    """None means the first thought of the session."""
    session_id: str | None = None
    """The session whose thoughts accompany the problem."""
    strategy: Annotated[str, Meta(description=f"Default {DEFAULT_STRATEGY}")] = DEFAULT_STRATEGY
    options: Options = msgspec.field(default_factory=dict)

    def ask(self, **others: Any) -> RunRequest:
        """Build the request. `others` are additional members of the request."""
        return RunRequest(
            problem=self.problem,
            session=self.session_id,
            strategy=self.strategy,
            options=self.options,
            participants=self.participants(),
            **others,
        )


class NewRun(AskedRun, frozen=True, kw_only=True):
    """Arguments of `coach` with the action `start`, and of `solve`."""

    max_calls: Count | None = None
    max_seconds: Amount | None = None

    def request(self) -> RunRequest:
        """Build the request."""
        limits = named_limits(self)
        return self.ask(budget=Budget(**limits) if limits else None)


class RefuteClaims(NewRun, frozen=True, kw_only=True):
    """Arguments of `coach` with the action `refute`. By default, the caller's current session is refuted."""

    claims: Annotated[tuple[str, ...], Meta(description="refute; default: the weakest")] = ()

    def request(self) -> RunRequest:
        """Build the request."""
        options = {"claims": list(self.claims)} if self.claims else {}
        return structs.replace(super().request(), strategy=REFUTER, options=options)


class OneRun(ListedParts, frozen=True, kw_only=True):
    """Arguments of the `coach` actions on one run: the run's id and participants."""

    run_id: str | None = None
    """None means the only open run of the connection."""


class AskedQuestion(OneRun, frozen=True, kw_only=True):
    """Arguments of `coach` with the action `question`."""

    id: Annotated[str, Meta(description="question: its id")]


class AnswerCoached(OneRun, frozen=True, kw_only=True):
    """Arguments of `coach` with the action `answer`."""

    answers: Annotated[Any, Meta(description="{id: answer}")]


class ListRuns(Struct, frozen=True, kw_only=True):
    """Arguments of `coach` with the action `list`."""

    limit: PageSize = 20
    cursor: str | None = None


class ReadTrace(OneRun, frozen=True, kw_only=True):
    """Arguments of `coach` with the action `read`."""

    limit: PageSize = 20
    cursor: str | None = None


class ResumeRun(OneRun, frozen=True, kw_only=True):
    """Arguments of `coach` with the action `resume`."""

    max_calls: Count | None = None
    max_seconds: Amount | None = None

    def budget_after(self, recorded: Budget) -> Budget:
        """Copy the recorded budget, replace the limits that this call names, and remove the dollar limit."""
        return structs.replace(recorded, usd=None, **named_limits(self))


class ForkRun(ResumeRun, frozen=True, kw_only=True):
    """Arguments of `coach` with the action `fork`."""

    at: Annotated[int, Meta(ge=0, description="fork: a question's fork_at")]
    options: Options = {}


class SolveCall(NewRun, frozen=True, kw_only=True):
    """Arguments of `solve`."""

    session_id: Annotated[str | None, Meta(description="Session whose thoughts come with the problem")] = None
    model: str | None = None
    max_usd: Amount | None = None
    run_id: Annotated[str | None, Meta(description="Run to resume, in place of a problem")] = None

    def budget_after(self, recorded: Budget) -> Budget | None:
        """Return `recorded` with the limits of this call. None if the call names no limit."""
        limits = named_limits(self)
        return structs.replace(recorded, **limits) if limits else None


CoachCall = NewRun | OneRun | ListRuns
COACH_ACTIONS: Mapping[str, type[CoachCall]] = {
    "start": NewRun,
    "refute": RefuteClaims,
    "answer": AnswerCoached,
    "question": AskedQuestion,
    "status": OneRun,
    "cancel": OneRun,
    "list": ListRuns,
    "read": ReadTrace,
    "resume": ResumeRun,
    "fork": ForkRun,
}


def read_coach_call(arguments: Mapping[str, Any]) -> tuple[str, CoachCall]:
    """Return the action and the arguments of a `coach` call. The arguments must have the same names as in the schema.

    Raises:
        UsageError: There is no such action, or an argument is missing or has the wrong type; `field` names it.
    """
    action = read_action(COACH_ACTIONS, arguments)
    return action, read_form(COACH_ACTIONS[action], arguments)


def name_known_arguments(
    tool: str, arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    """Rename arguments to the names in a tool's schema.

    Raises:
        UsageError: An argument is not in the schema; `choices` lists the schema's arguments.
    """
    known = schema["properties"]
    found = name_arguments(schema, arguments)
    unknown = [name for name in found if name not in known]
    if unknown:
        forms = {name: member.get("description", "") for name, member in known.items()}
        inside = [f"{name} is {form}." for name, form in forms.items() if f"{{{unknown[0]}:" in form]
        message = " ".join([*unknown_arguments(tool, unknown, () if inside else known), *inside])
        raise UsageError(
            f"{message} Its arguments: {', '.join(known)}", field=unknown[0][:60], choices=list(known)
        )
    return found
