"""Read the answers that a caller hands to a coached run, in any of the accepted shapes."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..errors import TooLargeError, UsageError

MAX_ANSWER_CHARS: Final = 200_000

SHAPE: Final = (
    'answers are {"ID": ANSWER, …}, where ANSWER is text or data in the form of `answer_schema`; '
    '[{"id": "ID", "answer": ANSWER}, …] will do too'
)
_ID: Final = re.compile(r"(c\d+)?e\d")
"""Matches the beginning of a question's id."""
_SHOWN: Final = 5


def read_answers(raw: Any, waiting: Mapping[str, Mapping[str, Any]] | None = None) -> list[tuple[str, str]]:
    """Read the answers that a caller gives. Return a pair of question id and text for each answer.

    Args:
        raw: {id: answer}, {`id`, `answer`}, a list of such objects, or the JSON text of any of these. The answer
            under a joined id (`e1,e2`) is a list of answers, or one answer. If only one question is open, `raw` may be
            its bare answer. If only one group of equal questions is open, `raw` may be the bare list of answers.
        waiting: Maps the id of each open question to its answer schema. Equal questions share a joined id.

    Raises:
        UsageError: The input has another shape, or an answer is neither text nor JSON data.
        TooLargeError: An answer is too long.
    """
    whole, waiting = _decode(raw), waiting or {}
    if isinstance(whole, Mapping) and set(whole) == {"answers"}:
        whole = _decode(whole["answers"])
    if len(waiting) == 1:
        whole = _name_answer(whole, *next(iter(waiting.items())))
    pairs = _pairs(whole)
    if not all(isinstance(name, str) and name.strip() for name, _ in pairs):
        raise UsageError(_shape(list(waiting)), option="answers")
    return [
        (effect_id, _text_of(effect_id, single))
        for name, answer in pairs
        for effect_id, single in _single_answers(name, answer)
    ]


def _shape(waiting: Sequence[str]) -> str:
    if not waiting:
        return "no question of this run waits for answers; its status says how it stands"
    example = ", ".join(
        f'"{name}": {"[ANSWER, …]" if "," in name else "ANSWER"}' for name in waiting[:_SHOWN]
    )
    return f"{SHAPE}. Here: {{{example}{', …' if len(waiting) > _SHOWN else ''}}}"


def _name_answer(whole: Any, name: str, schema: Mapping[str, Any]) -> Any:
    """Turn a bare answer into {`name`: answer}. `name` is the id of the only open question."""
    parts = whole if isinstance(whole, list | tuple) else [whole]
    if (not whole and whole != 0) or any(map(_names_question, parts)):
        return whole
    if "," in name:
        return {name: whole} if isinstance(whole, list | tuple) else whole
    if len(parts) == 1 and schema.get("type") != "array":
        whole = _decode(parts[0])
    if isinstance(whole, Mapping) and [*whole] == ["answer"] and "answer" not in schema.get("properties", ()):
        whole = whole["answer"]
    # A question that asks for text must not be answered with data.
    is_data = isinstance(whole, Mapping | list | tuple)
    return whole if is_data and schema.get("type") == "string" else {name: whole}


def _names_question(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    names = [name for name in (*part, part.get("id")) if isinstance(name, str)]
    return {"id", "answer"} <= part.keys() or any(map(_ID.match, names))


def _pairs(whole: Any) -> list[tuple[Any, Any]]:
    """Return pairs of question id and answer. None stands for a missing id."""
    mappings = [whole] if isinstance(whole, Mapping) else whole
    if not isinstance(mappings, list | tuple) or not all(isinstance(part, Mapping) for part in mappings):
        return [(None, whole)]
    pairs: list[tuple[Any, Any]] = []
    for mapping in mappings:
        id = mapping.get("id") if "answer" in mapping else None
        pairs += [(id, mapping.get("answer"))] if "id" in mapping else mapping.items()
    return pairs


def _decode(data: Any) -> Any:
    """Decode `data` if it is the JSON text of an object or a list. Return other data unchanged."""
    if not isinstance(data, str):
        return data
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data
    return value if isinstance(value, dict | list) else data


def _single_answers(name: str, answer: Any) -> list[tuple[str, Any]]:
    effect_ids = [part.strip() for part in name.split(",") if part.strip()]
    if len(effect_ids) <= 1:
        return [(effect_id, answer) for effect_id in effect_ids or [name]]
    several = _decode(answer)
    answers: list[Any] = list(several) if isinstance(several, list | tuple) else [answer]
    if len(answers) > len(effect_ids):
        raise UsageError(
            f"{name[:60]} takes at most {len(effect_ids)} answers, not {len(answers)}", option="answers"
        )
    return list(zip(effect_ids, answers, strict=False))


def _text_of(effect_id: str, answer: Any) -> str:
    subject = f"the answer to {effect_id[:60]}"
    try:
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{subject} is neither text nor JSON data: {error}", option="answers") from None
    if len(text) > MAX_ANSWER_CHARS:
        message = f"{subject} has {len(text):,} characters; the limit is {MAX_ANSWER_CHARS:,}"
        raise TooLargeError(message, limit=MAX_ANSWER_CHARS)
    if any("\ud800" <= char <= "\udfff" for char in text):
        message = f"{subject} holds a lone surrogate, so it is not valid Unicode text"
        raise UsageError(message, option="answers")
    return text
