"""Profiles: strategies from papers. A few prompts define each profile, and all profiles share one mechanism.

    o_1, …, o_n ~ π(o | x, d)              list: subquestions, points, or questions about a draft d
    r_i ~ π(r | o_i, …)                    work: one entry after another with all earlier results, or all in parallel
    y ~ π(y | x, d, o_1, r_1, …, o_n, r_n) answer

chain_of_verification   Dhuliawala et al. 2023, arXiv:2309.11495, factored: the questions are answered without the draft
least_to_most           Zhou et al. 2022, arXiv:2205.10625: each subquestion is answered with the earlier answers
skeleton                Ning et al. 2023, arXiv:2307.15337: points are written in parallel and joined unchanged

*Differs from the papers*: Instructions replace the examples. Lists are bounded. The answer has a mark. After a
refutation, the model is asked for another answer and sees the objection.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..blocks.answers import MARKED, AnswerOptions, AnswerState, ReasonedAnswer, without_number
from ..core.bodies import Body, Conclusion, Move, Thought, go, raise_if_all_failed, replies, request, stay
from ..core.effects import Ask
from ..core.events import Reply
from ..core.readings import AROUND
from ..core.strategy import AnswerDetails, Field, Stage, Strategy, final_response, problem_reception

LISTED = """{task} At most {limit}. Reply with one JSON object:
{{"entries": ["…", …]}}"""
REPLIED = f"Write its answer alone, in a sentence, {AROUND}."
WRITTEN = f"Write its text alone, {AROUND}."
LOST = "(no answer: "


class Options(AnswerOptions, frozen=True):
    """Options of a profile."""

    max_entries: Annotated[int, Meta(ge=1, le=20, description="Most questions or points.")] = 6


class Entries(Struct, frozen=True):
    """A list."""

    entries: Annotated[tuple[str, ...], Meta(min_length=1, description="One entry each, in order.")]


class WorkedOut(Struct, frozen=True):
    """The result of an entry."""

    text: Annotated[str, Meta(min_length=1, description="The answer, or the text of the point.")]


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of a profile: the draft, the entries, their results, and the answer."""

    options: Options
    draft: str = ""
    entries: tuple[str, ...] = ()
    worked: tuple[str, ...] = ()

    @property
    def material(self) -> tuple[str, ...]:
        """The problem, the draft, and the results so far, as parts of a question."""
        draft = (f"Draft:\n{self.draft}",) if self.draft else ()
        return (f"Problem: {self.problem}", *draft, pair_up(self.entries, self.worked))

    @property
    def joined(self) -> str | None:
        """The results as one text. None if every result was lost."""
        return None if all(text.startswith(LOST) for text in self.worked) else "\n\n".join(self.worked)

    def ask(self, task: str, *shown: str, mark: str = "", wants_value: bool = False) -> Ask:
        """Build a question that shows the texts in `shown` and the objections so far."""
        facts = {"kind": "profile", "problem": self.problem}
        prompt = "\n\n".join([*filter(None, shown), *self.final.objections])
        return Ask(prompt, mark=mark, task=task, wants_value=wants_value, facts=facts)


def pair_up(entries: Sequence[str], worked: Sequence[str]) -> str:
    """Return a text in which each finished entry is followed by its result."""
    return "\n\n".join(f"{entry}\n{text}" for entry, text in zip(entries, worked, strict=False))


class ProfileDetails(AnswerDetails, total=False):
    """The details of a result."""

    draft: Annotated[str, Meta(description="The first answer.")]
    entries: Annotated[list[str], Meta(description="The questions, sub-problems or points.")]
    worked: Annotated[list[str], Meta(description="The answer to each.")]


class Profile(Struct, frozen=True):
    """The definition of a strategy that makes a list of entries, works the entries out, and answers from the results.

    Attributes:
        rows: Maps each stage to its description and its guidance. The guidance is also the question of the stage.
            The stages are: write a draft (optional), list the entries, work the entries out, and answer.
        entry: The noun for an entry in questions.
        mark: The instruction to mark the result of an entry.
        in_order: Whether one entry is worked out after another, with the problem and the earlier results. Otherwise all
            entries are worked out in parallel. In parallel, a question shows the problem only if `joins` is set.
        joins: Whether the answer is the results, joined unchanged.
    """

    rows: dict[str, tuple[str, str]]
    entry: str = "Question"
    mark: str = REPLIED
    in_order: bool = False
    joins: bool = False

    def write_draft(self, s: State) -> Body:
        """Ask for the draft, which later stages check."""
        (reply,) = yield from replies(s, ReasonedAnswer, s.ask(self._task(-4), *s.material, mark=MARKED))
        return go(replace(s, draft=reply.text), self._names[1], Thought(reply.text))

    def list_entries(self, s: State) -> Body:
        """Ask for the list of entries."""
        task = LISTED.format(task=self._task(-3), limit=s.options.max_entries)
        (reply,) = yield from replies(s, Entries, s.ask(task, *s.material))
        entries = tuple(map(without_number, reply.entries[: s.options.max_entries]))
        thought = Thought("\n".join(entries), data={"entries": list(entries)})
        return go(replace(s, entries=entries), self._names[-3], thought)

    def work(self, s: State) -> Body:
        """Work out the next entry, or all entries in parallel."""
        entries = s.entries[len(s.worked) :][: 1 if self.in_order else None]
        outline = (f"Problem: {s.problem}", "Outline:\n" + "\n".join(s.entries)) if self.joins else ()
        shown = s.material if self.in_order else outline
        task = self._task(-2)
        asks = [s.ask(task, *shown, f"{self.entry}: {entry}", mark=self.mark) for entry in entries]
        answers = yield request(s, *asks, give_failures=True)
        raise_if_all_failed(answers)
        worked = [
            each.value.text if isinstance(each, Reply) else f"{LOST}{each.message})" for each in answers
        ]
        s = replace(s, worked=(*s.worked, *worked))
        thought = Thought(pair_up(entries, worked), data={"worked": worked})
        is_over = len(s.worked) == len(s.entries)
        return go(s, self._names[-2], thought) if is_over else stay(s, thought)

    def give_answer(self, s: State) -> Body:
        """Settle the answer. If `joins` is set, try the results as the answer before asking the model."""
        if self.joins and s.joined and s.final.text is None and not s.final.objections:
            s = replace(s, final=s.final.propose(s.joined))
        question = s.ask(self._task(-1), *s.material, mark=MARKED, wants_value=s.options.verify)
        return (yield from s.settle_answer(question, s.worked))

    def close(self, s: State) -> Move:
        """Move to the stage that gives the answer, which uses the results so far."""
        return go(s, self._names[-2])

    def conclude(self, state: State) -> Conclusion:
        """Return the answer. While there is no answer, return the results if `joins` is set, or else the draft."""
        worked = {"draft": state.draft, "entries": list(state.entries), "worked": list(state.worked)}
        document = {name: value for name, value in worked.items() if value} | state.final.document
        conclusion = state.conclude(document, so_far=state.joined if self.joins else state.draft)
        return conclusion.because(self._check(state), self._names[0], self._names[-3])

    def _check(self, state: State) -> str:
        """Return a sentence that says how the draft was checked, or an empty text if the draft was not checked."""
        answered = sum(not text.startswith(LOST) for text in state.worked)
        if not state.draft or not answered:
            return ""
        change = "keeps" if state.draft == state.final.text else "corrects"
        asked = f"{answered} of {len(state.entries)} questions about its facts"
        return f"the answer {change} the draft after {asked}, answered without the draft"

    def _task(self, row: int) -> str:
        return [*self.rows.values()][row][1]

    @property
    def _names(self) -> list[str]:
        return [*self.rows, "final_response"]

    def define(self, **parts: Any) -> Strategy[State, Options]:
        """Build the strategy. `parts`, such as `name` and `title`, are passed to `Strategy`."""
        names = self._names
        answered = {"reply": ReasonedAnswer, "example": {"answer": "12 boats"}}
        fields = (Field.optional("entries", "texts", "The entries of the list.", minItems=1),)
        example = {"entries": ["How many rowers are there?", "How many fit into a boat?"]}
        members: list[dict[str, Any]] = [
            {"body": self.write_draft, **answered},
            {"body": self.list_entries, "reply": Entries, "example": example, "fields": fields},
            {"body": self.work, "reply": WorkedOut, "example": {"text": "48 rowers"}},
            {"body": self.give_answer, **answered},
        ]
        stages = zip(self.rows.items(), names[1:], members[-len(self.rows) :], strict=True)
        return Strategy(
            **parts,
            version=2,
            options=Options,
            state=State,
            conclude=self.conclude,
            close=self.close,
            details=ProfileDetails,
            stages=(
                problem_reception(
                    (names[0],), "Say what is asked, what is given, and in which form the answer is wanted."
                ),
                *(Stage(name, (to,), *about, **part) for (name, about), to, part in stages),
                final_response(),
            ),
        )


CHAIN_OF_VERIFICATION = Profile(
    rows={
        "baseline_response": (
            "Write the answer that is to be checked.",
            "First think the problem through, then answer it.",
        ),
        "verification_planning": (
            "List questions that check the facts in it.",
            "Now list questions whose answers show whether the facts in the draft are right: one fact each, so that it "
            "can be answered without the draft.",
        ),
        "verification_execution": (
            "Answer each question by itself, as if the draft were not there.",
            "Answer the question from what you are sure of; say so where you are not sure.",
        ),
        "verified_response": (
            "Correct the draft by the answers.",
            "Now answer the problem again: keep what is confirmed, correct what is refuted, and drop what stays open.",
        ),
    },
).define(
    name="chain_of_verification",
    title="Chain of Verification",
    source="arXiv:2309.11495",
    summary="Drafts an answer, checks its facts one by one, and corrects it: for lists and facts from memory.",
    calls=5,
    least_calls=4,
)

LEAST_TO_MOST = Profile(
    rows={
        "decomposition": (
            "List easier questions that lead to the problem.",
            "First list easier questions that lead to the problem, the easiest first, each to be answered with the "
            "answers before it. Do not list the problem itself.",
        ),
        "subproblem_solving": (
            "Answer them in order: stay for the next one, leave when none is left.",
            "Now answer this question only: first say how its answer follows from those before.",
        ),
        "solution": (
            "Answer the problem.",
            "Now solve the problem step by step, with the answers to the questions.",
        ),
    },
    in_order=True,
).define(
    name="least_to_most",
    title="Least to Most",
    source="arXiv:2205.10625",
    summary="Answers easier questions first, in order, and then the problem: "
    "for problems that are harder than their parts.",
    calls=4,
    least_calls=3,
)

SKELETON = Profile(
    rows={
        "skeleton": (
            "Write the outline of the answer.",
            "First write the skeleton of the answer only: points of three to five words each, in order.",
        ),
        "point_expanding": (
            "Write each point, without leaning on the text of another.",
            "Now write this point only, in one or two sentences.",
        ),
        "joining": ("Put the points together as they stand.", "Now write the whole answer."),
    },
    entry="Point",
    mark=WRITTEN,
    joins=True,
).define(
    name="skeleton",
    title="Skeleton of Thought",
    source="arXiv:2307.15337",
    summary="Outlines an answer and writes its points side by side: for long texts that you need soon.",
    calls=3,
    least_calls=2,
)

PROFILES = (CHAIN_OF_VERIFICATION, LEAST_TO_MOST, SKELETON)
