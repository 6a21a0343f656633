"""Turn a request for a run into an order. All checks happen before anything is written or paid for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs, to_builtins

from ..blocks.drafts import DraftOptions
from ..core.budget import DEFAULT_CALLS, Budget
from ..core.json_schema import schema_fault
from ..core.options import nested_options, read_options, with_coached_defaults
from ..core.problem import check_problem, without_quoted
from ..core.registry import Registry, resolve, strategies_at_hand
from ..core.strategy import Strategy
from ..engine.coach import Caller
from ..engine.fork import check_rewordings
from ..engine.journal import Begun
from ..engine.policy import Performers
from ..engine.prices import check_priced
from ..errors import UsageError
from ..puzzles.reading import read_puzzle
from ..strategies import DEFAULT_STRATEGY
from ..strategies.choice import AUTO, Inputs, choose_strategy
from ..system.masking import SECRETS
from ..system.plugins import has_extra
from ..tools.verifiers import exact_verifier, idle_verifier_warning
from .composition import MAX_LEVELS, Composition, read_composition
from .participants import Participants, PerformerPool
from .prompts import read_prompts
from .rights import Rights

Levels = list[tuple[Strategy[Any, Any], dict[str, Any]]]
"""The strategies of a composition, outermost first, each with its options as the user wrote them."""


class RunRequest(Struct, frozen=True, kw_only=True):
    """A request for a run, from any surface (command line, Python, HTTP or MCP).

    Args:
        problem: The problem. Defaults to the first thought of the session.
        session: The session whose thoughts accompany the problem: its id, the beginning of its id, or `last`.
        strategy: A name in the registry, or the caller's own strategy.
        budget: Defaults to `DEFAULT_CALLS` calls, but to no limit if the run is coached or has a preset or cost limit.
        participants: The participants. A coached run uses only the verifier and the tools.
        form: JSON schema of the answer.
        prompts: Prompts that replace the questions of stages, by `STRATEGY.STAGE`; see the module `prompts`.
        coached: Whether the caller answers the questions.
    """

    problem: str | None = None
    session: str | None = None
    strategy: str | Strategy[Any, Any] = DEFAULT_STRATEGY
    options: Mapping[str, Any] = {}
    budget: Budget | None = None
    participants: Participants = Participants()
    form: dict[str, Any] | None = None
    prompts: Mapping[str, str] = {}
    coached: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError if `options` is not a mapping, or if `session` is neither text nor None."""
        for name, kind in (("options", Mapping), ("session", str | None)):
            if not isinstance(value := getattr(self, name), kind):
                wanted = "text" if name == "session" else "a mapping"
                raise UsageError(f"{name} must be {wanted}, got {type(value).__name__}", option=name)


def make_order(
    request: RunRequest, strategies: Registry, pool: PerformerPool, rights: Rights
) -> tuple[Begun, Performers]:
    """Turn a complete request with admitted participants into an order, and open the performers.

    Raises:
        UsageError: The request is invalid; the message names the fault and the legal choices.
    """
    check_problem(request.problem or "")
    if request.form is not None and (fault := schema_fault(request.form)):
        raise UsageError(f"the answer cannot be put into this form: {fault}", option="form")
    check_rewordings(request.prompts)
    asked = without_quoted(request.problem or "")
    participants = request.participants.with_caller() if request.coached else request.participants
    levels, why = _read_levels(
        request.strategy, request.options, strategies, lambda: _choose(request, participants, strategies)
    )
    used = [strategy for strategy, _ in levels]
    if why and participants.verifier is None:
        participants = structs.replace(participants, verifier=exact_verifier(asked))
    participants = pool.attach_built_in(participants, used)
    if not request.coached:
        seats = _seats(levels, rights) or participants.seats
        model = participants.model
        # If the request gives the candidates, the verifier alone decides among them.
        decides_alone = participants.verifier and request.options.get("candidates")
        fallback = seats[0] if seats else "offline" if decides_alone else None
        if model is None and fallback is not None and pool.offered_model(asked) is None:
            model = fallback
        participants = structs.replace(participants, seats=seats, model=model)
    # The file for recorded answers is opened last, so that a refused order writes nothing.
    performers = pool.open(structs.replace(participants, record=None), asked)
    options = _read_options(levels, performers)
    inner = [resolve(options[-1].over, strategies)] if isinstance(options[-1], DraftOptions) else []
    prompts = read_prompts(SECRETS.mask_data(dict(request.prompts)), [*used, *inner])
    budget = _budget(request, to_builtins(options[0]), performers)
    warnings = filter(None, _warnings(asked, used, options, budget, participants, performers))
    order = Begun(
        strategy=used[0].name,
        problem=request.problem or "",
        options=to_builtins(options[0]),
        budget=budget,
        participants=performers.names,
        why=why,
        warnings=tuple(warnings),
        from_session=request.session,
        form=request.form,
        prompts=prompts,
    )
    return order, structs.replace(
        performers, model=pool.record_answers(performers.model, participants.record)
    )


def explain_choice(request: RunRequest, strategies: Registry) -> dict[str, str]:
    """Return the strategy that `auto` chooses for a problem, and the reason. This starts no run."""
    check_problem(without_quoted(request.problem or ""))
    name, why = _choose(request, request.participants, strategies)
    return {"strategy": name, "why": why}


def check_offline(begun: Begun) -> None:
    """Raise UsageError if the model `offline` answers a run's questions but cannot read the problem."""
    from ..models.offline import NO_PUZZLE

    is_asked = begun.participants.model == "offline" and not begun.options.get("candidates")
    if is_asked and read_puzzle(without_quoted(begun.problem)) is None:
        raise UsageError(NO_PUZZLE, option="model")


def strategies_in(begun: Begun, strategies: Registry) -> list[Strategy[Any, Any]]:
    """Return the strategy of a run, and its inner strategies."""
    inside = [str(options["over"]) for options in nested_options(begun.options) if "over" in options]
    return [resolve(name, strategies) for name in (begun.strategy, *inside)]


# -- strategies


def _choose(request: RunRequest, participants: Participants, strategies: Registry) -> tuple[str, str]:
    options = {name.replace("-", "_"): value for name, value in request.options.items()}
    inputs = Inputs(
        problem=without_quoted(request.problem or ""),
        has_verifier=participants.verifier is not None,
        has_tools=bool(participants.tools or participants.mcp),
        has_documents=bool(participants.context),
        has_sandbox=participants.sandbox is not None or has_extra("sandbox"),
        is_focused=options.get("focused_answer_type", "none") != "none",
        is_number=(request.form or {}).get("type") in ("number", "integer"),
        calls=(request.budget and request.budget.calls) or 0,
    )
    driven = (each for each in strategies_at_hand(strategies).values() if each.is_driven)
    return choose_strategy(inputs, driven)


def _read_levels(
    strategy: str | Strategy[Any, Any],
    options: Mapping[str, Any],
    strategies: Registry,
    choose: Callable[[], tuple[str, str]],
    *,
    above: int = 0,
) -> tuple[Levels, str]:
    """Return a composition's levels, and why `auto` chose the strategy. Without `auto`, the reason is empty.

    A default inner strategy without options does not count as a level.
    """
    # Secrets are masked before `-` becomes `_` in names, since a changed secret would not be recognized.
    options = SECRETS.mask_data(dict(options))
    written, why = Composition(""), ""
    if isinstance(strategy, str):
        written = read_composition(SECRETS.mask(strategy))
        if written.name.lower() == AUTO:
            chosen, why = choose()
            taken = read_composition(chosen)
            written = structs.replace(taken, inside=written.inside or taken.inside, options=written.options)
        strategy = resolve(written.name, strategies)
    complete = {name.replace("-", "_"): value for name, value in options.items()}
    for name in written.options:
        if name.replace("-", "_") in complete:
            raise UsageError(f"the option {name} is named twice", option=name)
    complete = {**written.options, **complete}
    if not _has_option(strategy, "over"):
        if written.inside is not None:
            raise UsageError(f"{strategy.name} takes no inner strategy", option="strategy")
        return [(strategy, complete)], why
    if written.inside is not None:
        complete["over"] = written.inside
    over: Any = read_options(
        strategy, {name: complete[name] for name in ("over", "over_options") if name in complete}
    )
    if above >= MAX_LEVELS:
        raise UsageError(f"a composition has at most {MAX_LEVELS} inner strategies", option="strategy")
    levels, _ = _read_levels(over.over, over.over_options, strategies, choose, above=above + 1)
    inner, inner_options = levels[0]
    complete["over"] = inner.name
    is_plain = inner.name == strategy.options().over and not inner_options
    return [(strategy, complete), *([] if is_plain else levels)], why


def _read_options(levels: Levels, performers: Performers) -> list[Any]:
    """Read the options of each nested strategy, outermost first. Some defaults depend on the performers."""
    checked: list[Any] = []
    for strategy, written in reversed(levels):
        complete = dict(written)
        if checked:
            complete["over_options"] = to_builtins(checked[0])
        if isinstance(performers.model, Caller):
            complete = with_coached_defaults(strategy, complete)
        if performers.verifier is not None and _has_option(strategy, "verify"):
            complete.setdefault("verify", True)
        # The offline model only computes. It cannot judge answers.
        judges = performers.judge_model or performers.model
        if judges.name == "offline" and _has_option(strategy, "judge"):
            complete.setdefault("judge", "off")
        if performers.tools is not None and _has_option(strategy, "tools"):
            complete.setdefault("tools", performers.tools.cards())  # pyright: ignore[reportAttributeAccessIssue]
        checked.insert(0, read_options(strategy, complete))
    return checked


def _has_option(strategy: Strategy[Any, Any], name: str) -> bool:
    return name in getattr(strategy.options, "__struct_fields__", ())


# -- participants


def _seats(levels: Levels, rights: Rights) -> tuple[str, ...]:
    """Return the models in the option `models` of a composition, each as the operator wrote it."""
    named = [(level, options["models"]) for level, options in levels if options.get("models")]
    if len(named) > 1:
        raise UsageError("only one strategy of a composition may name models", option="models")
    names = (name for level, written in named for name in read_options(level, {"models": written}).models)  # pyright: ignore
    return tuple(map(rights.model, names))


# -- checks


def _budget(request: RunRequest, options: Mapping[str, Any], performers: Performers) -> Budget:
    """Return the budget of a run. Among several dollar limits, the lowest counts."""
    limits = [named["cost_limit"] for named in nested_options(options) if named.get("cost_limit")]
    is_exempt = isinstance(performers.model, Caller) or "preset" in request.options or limits
    budget = request.budget or Budget(calls=None if is_exempt else DEFAULT_CALLS)
    if limits or budget.usd is not None:
        check_priced("cost_limit" if limits else "max_usd", performers.models, performers.prices)
    if not limits:
        return budget
    return structs.replace(budget, usd=min(limits if budget.usd is None else [budget.usd, *limits]))


def _warnings(
    asked: str,
    used: Sequence[Strategy[Any, Any]],
    options: Sequence[Any],
    budget: Budget,
    participants: Participants,
    performers: Performers,
) -> Iterator[str]:
    """Yield warnings about a run. The caller skips empty warnings. If the run cannot work, raise UsageError."""
    strategy, first, verifier, seats = used[0], options[0], performers.verifier, participants.seats
    if verifier is None and any(getattr(each, "verify", False) for each in options):
        raise UsageError("verify needs a verifier; name it in `verifier`", option="verify")
    if getattr(first, "verify", False):
        yield idle_verifier_warning(verifier, asked)
    candidates = getattr(first, "candidates", None)
    if candidates and verifier is None and getattr(first, "judge", None) == "off":
        raise UsageError(
            "nothing tells the candidates apart: name a verifier, or a model that judges", option="model"
        )
    called = [card.name for each in options for card in getattr(each, "tools", None) or ()]
    participants.check_tools(called)
    if participants.tools and not called:
        yield f"tools: {strategy.name} calls no tools"
    names = [each.name for each in used if each.needs_models]
    if names and not isinstance(performers.model, Caller) and len({*seats}) < max(2, len(seats)):
        message = (
            f"{names[0]} needs two models or more, each once, cheapest first: name them in the option models, "
            'such as models=["ollama:small", "openai:large"]'
        )
        raise UsageError(message, option="models")
    yield "" if candidates else _check_calls(strategy, budget.calls)


def _check_calls(strategy: Strategy[Any, Any], calls: int | None) -> str:
    if calls is None or calls >= strategy.least_calls:
        return ""
    needed = f"{strategy.name} needs {strategy.least_calls} calls; with {calls}"
    if strategy.needs_least:
        raise UsageError(
            f"{needed} it has no result: allow more calls, or choose another strategy", option="budget"
        )
    return f"{needed} this is one direct question"
