"""Builds the report of a run as a list of blocks, which a terminal, a Markdown file or an HTML page can show.

`run_report` returns the whole report: the problem, the answer, the outline, the warnings, the path and every thought.
`outline` returns only the blocks that summarize the work. `markdown_page` escapes any markup that the blocks contain.
"""

import datetime
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..core.bodies import Thought
from ..engine.record import Record
from ..text import escape_unseen, inline_text, prose_lines, shorten
from . import present

TITLE_CHARS = 120


class Heading(Struct, frozen=True, tag_field="kind", tag="heading"):
    """A heading. The title of a report has level 1."""

    text: str
    level: int = 2


class Prose(Struct, frozen=True, tag_field="kind", tag="prose"):
    """Text of one or more lines."""

    text: str


class Bullets(Struct, frozen=True, tag_field="kind", tag="bullets"):
    """A bulleted list."""

    items: tuple[str, ...]


Block = Heading | Prose | Bullets


def run_report(record: Record) -> list[Block]:
    """Return the whole report of a run: title and problem, then the answer, then the work that led to the answer."""
    trace: dict[str, Any] = {**record.result.document(), **record.head}
    return [*report_head(trace), *report_answer(trace), *report_work(record, trace)]


def report_head(trace: Mapping[str, Any]) -> list[Block]:
    """Return the top of the report: the title, the main facts about the run, and the problem."""
    title = shorten(escape_unseen(_text(trace.get("title")) or trace["problem"]), TITLE_CHARS, one_line=True)
    begun = datetime.datetime.fromtimestamp(trace["created_at_ms"] / 1000, datetime.UTC)
    facts = (
        present.end_text(trace),
        f"{trace['strategy']}, {trace['model']}",
        present.spend(dict(trace)),
        f"run {trace['run_id']}, begun {begun:%Y-%m-%d %H:%M} UTC",
    )
    return [Heading(title, 1), Bullets(facts), Heading("Problem"), Prose(trace["problem"])]


def report_answer(trace: Mapping[str, Any]) -> list[Block]:
    """Return blocks with the answer. If there is no answer, show how the run ended and any best answer so far."""
    answer, best = trace["answer"], trace.get("best_answer")
    text = answer if answer is not None else f"No answer: {present.end_text(trace)}"
    blocks: list[Block] = [Heading("Answer"), Prose(text)]
    return [*blocks, Heading("Best so far, not an answer"), Prose(best)] if best else blocks


def report_work(record: Record, trace: Mapping[str, Any]) -> list[Block]:
    """Return blocks about the work, such as the reason for the result, the warnings and the thoughts."""
    why, warnings = trace.get("why"), trace["warnings"]
    blocks: list[Block] = [Heading("Why"), Prose(why["text"])] if why else []
    for stage, prompt in trace.get("prompts", {}).items():
        blocks += [Heading(f"Prompt of {stage}"), Prose(prompt)]
    blocks += outline(trace)
    if warnings:
        blocks += [Heading("Warnings"), Bullets(tuple(warnings))]
    blocks += [Heading("Path"), Prose(path_text(record.entries("path"), trace["stage"]))]
    thoughts: list[Block] = []
    for number, thought in enumerate(record.thoughts(), 1):
        text = "\n".join([thought.text, *present.action_lines(thought.data)])
        thoughts += [Heading(thought_title(number, thought), 3), Prose(text)]
    return [*blocks, Heading("Thoughts"), *thoughts] if thoughts else blocks


def thought_title(number: int, thought: Thought) -> str:
    """Return the title of a thought: its number, and its stage, branch and score if it has them."""
    score = thought.score
    shown = None if score is None else f"score {score:.2f}" if score <= 1 else f"score {score:g}"
    return " · ".join(filter(None, (f"Thought {number}", thought.stage, thought.branch, shown)))


def whole_thought(title: str, thought: Thought) -> list[str]:
    """Return a whole thought as lines: the title, then the indented text, actions and observations."""
    lines = [*thought.text.splitlines(), *present.action_lines(thought.data)]
    return [title, *(f"  {line}".rstrip() for line in lines)]


def path_text(edges: Iterable[Sequence[str]], last: str) -> str:
    """Join the stages of a run with arrows. A stage that repeats directly gets a count: `plan → step ×3`."""
    stages = itertools.chain((edge[0] for edge in edges), [last])
    runs = ((stage, sum(1 for _ in same)) for stage, same in itertools.groupby(stages))
    return " → ".join(stage if times == 1 else f"{stage} ×{times}" for stage, times in runs)


# -- from the result document


def outline(document: Mapping[str, Any]) -> list[Block]:
    """Return blocks that summarize a result document, such as the plan, the ranking and the findings."""
    blocks: list[Block] = []
    if plan := _text(document.get("plan_text")):
        blocks += [Heading("Plan"), Prose(plan)]
    tasks = _objects(document.get("tasks"))
    for iteration in _objects(document.get("iterations")):
        number = iteration.get("iteration")
        items = _iteration(iteration, [task for task in tasks if task.get("iteration") == number])
        blocks += [Heading(f"Iteration {number}"), Bullets(tuple(items))]
    if claims := _objects(document.get("claims")):
        quotes = (f"{claim.get('verdict')}: “{claim['quote']}”" for claim in claims if claim.get("quote"))
        refuted = sum(claim.get("verdict") == "refuted" for claim in claims)
        share = f"{refuted} of {present.count_of(len(claims), 'claim')} refuted"
        blocks += [Heading(share), Bullets(tuple(quotes))]
    if ranking := _objects(document.get("ranking")):
        blocks += [Heading("Ranking"), Bullets(tuple(map(_ranking_line, itertools.count(1), ranking)))]
    return [*blocks, *findings(document)]


def _ranking_line(place: int, row: Mapping[str, Any]) -> str:
    same, score, failed = row.get("same"), row.get("score"), _text(row.get("failed"))
    parts = [
        f"{place}. {row.get('candidate')}",
        f"the same: {', '.join(map(str, same))}" if isinstance(same, list) else "",
        f"score {score:.2f}" if isinstance(score, float) else "",
        f"failed: {failed}" if failed else "",
        *(map(str, reasons) if isinstance(reasons := row.get("reasons"), list) else ()),
    ]
    return " · ".join(filter(None, parts))


def findings(document: Mapping[str, Any]) -> list[Block]:
    """Return blocks with the findings of a result, such as the synthesis and the key findings."""
    heads = [text for name in ("title", "headline") if (text := _text(document.get(name)))]
    synthesis = document.get("synthesis")
    found = synthesis.get("key_findings") if isinstance(synthesis, Mapping) else None
    whole = _text(synthesis.get("answer")) if isinstance(synthesis, Mapping) else ""
    final = _text(document.get("final_answer"))
    blocks: list[Block] = [Heading(heads[0]), *map(Prose, heads[1:])] if heads else []
    if whole and whole != final:
        blocks += [Heading("Synthesis"), Prose(whole)]
    if isinstance(found, list) and found:
        blocks += [Heading("Key findings"), Bullets(tuple(map(str, found)))]
    if final and final != document.get("answer"):
        blocks += [Heading("Final answer"), Prose(final)]
    caption = _text(document.get("image_caption"))
    return [*blocks, Heading("Image caption"), Prose(caption)] if caption else blocks


def _iteration(iteration: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    complexity, decision = iteration.get("complexity"), iteration.get("decision")
    if isinstance(complexity, Mapping):
        sides = complexity.get("dimensions")
        listed = "; ".join(map(str, sides)) if isinstance(sides, list) else _text(sides)
        more = f" ({listed})" if listed else ""
        more += f" · Suggested tasks: {count}" if (count := complexity.get("suggested_tasks")) else ""
        yield f"Complexity: {complexity.get('complexity_level')}{more}"
    for plan in _objects(iteration.get("plans")):
        name = _text(plan.get("plan"))
        chosen = "selected" if name == iteration.get("selected_plan") else ""
        cells = f"Plan {name}".strip(), score_of(plan.get("overall_score")), chosen, _text(plan.get("reason"))
        yield " · ".join(filter(None, cells))
    for number, task in enumerate(tasks, 1):
        resource, status, query, reason = (
            _text(task.get(name)) for name in ("resource_name", "status", "task_query", "reason")
        )
        why = f": {reason}" if reason and status != "ACCEPTED" else ""
        yield " · ".join(filter(None, (f"Task {number}", resource, status, query + why)))
    if isinstance(decision, Mapping):
        yield _decision(decision)


def score_of(score: Any) -> str:
    """Format the score of a plan as `87/100`. Return an empty string if the plan has no score."""
    return f"{round(score, 1):g}/100" if isinstance(score, int | float) else ""


def _decision(decision: Mapping[str, Any]) -> str:
    goes_on = decision.get("continue_iterations")
    advice = decision.get("recommendations_for_next_iteration")
    more = "; ".join(map(str, advice)) if isinstance(advice, list) else _text(advice)
    parts = [
        "Decision: continue" if goes_on else "Decision: stop",
        _text(decision.get("quality_summary")),
        _text(decision.get("decision_rationale")),
        more if goes_on else "",
    ]
    return ". ".join(part.removesuffix(".") for part in parts if part) + "."


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


# -- as text


def markdown_page(blocks: Iterable[Block]) -> str:
    """Return the blocks as a Markdown page. Texts in the blocks cannot add links, images or tags to the page."""
    return "\n\n".join("\n".join(_markdown_block(block)) for block in blocks) + "\n"


def _markdown_block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield f"{'#' * level} {inline_text(text)}"
        case Prose(text):
            yield from (f"> {line}".rstrip() for line in prose_lines(text))
        case Bullets(items):
            yield from (f"- {inline_text(item)}" for item in items)
