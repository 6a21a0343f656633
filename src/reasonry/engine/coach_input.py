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
_RANGE: Final = re.compile(r"e(\d{1,9})\.\.e(\d{1,9})")
_ID_NAMES: Final = ("id", "question_id", "questionId")
_ID: Final = re.compile(r"e\d")
"""Matches the beginning of a question's id."""
_MAX_COUNT: Final = 10_000
_SHOWN: Final = 5


def read_answers(raw: Any, waiting: Mapping[str, Mapping[str, Any]] | None = None) -> list[tuple[str, str]]:
    """Return the answers of a call as pairs of question id and text.

    Args:
        raw: {id: answer}, a list of {`id`, `answer`}, one such object, or the JSON text of any of these. A joined id
            (see `joined_id`) takes the list of its answers, or one answer. A single open question also takes its bare
            answer, and equal open questions take the bare list of their answers.
        waiting: The answer schema of each open question, by its id; equal questions share a joined id.

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


def joined_id(effect_ids: Sequence[str]) -> str:
    """Return the joined id of equal questions: `e1..e5` for consecutive ids, otherwise all ids with commas."""
    numbers = [int(effect_id[1:]) if effect_id[1:].isdecimal() else -1 for effect_id in effect_ids]
    if len(numbers) > 1 and numbers[0] > 0 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{effect_ids[0]}..{effect_ids[-1]}"
    return ",".join(effect_ids)


def _shape(waiting: Sequence[str]) -> str:
    if not waiting:
        return "no question of this run waits for answers; its status says how it stands"
    example = ", ".join(
        f'"{name}": {"[ANSWER, …]" if len(_split_id(name)) > 1 else "ANSWER"}' for name in waiting[:_SHOWN]
    )
    return f"{SHAPE}. Here: {{{example}{', …' if len(waiting) > _SHOWN else ''}}}"


def _name_answer(whole: Any, name: str, schema: Mapping[str, Any]) -> Any:
    """Return a bare answer to the only open question under the id of this question."""
    is_equal = len(_split_id(name)) > 1
    if is_equal and not isinstance(whole, list | tuple):
        return whole
    takes_list = is_equal or schema.get("type") == "array"
    if isinstance(whole, list | tuple) and len(whole) == 1 and not takes_list:
        whole = _decode(whole[0])
    if isinstance(whole, Mapping):
        if _names_question(whole):
            return whole
        if not schema.get("properties", {}).keys().isdisjoint(whole):
            return {name: whole}
        return {name: whole["answer"]} if set(whole) == {"answer"} else whole
    if isinstance(whole, list | tuple):
        # A list without its object is read with the form, as any answer is.
        is_answer = whole and (takes_list or "properties" in schema) and not any(map(_names_question, whole))
    else:
        is_answer = isinstance(whole, str | int | float) and str(whole).strip()
    return {name: whole} if is_answer else whole


def _names_question(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    ids = [part[name] for name in _ID_NAMES if name in part]
    keys = [*part, *ids]
    return bool(ids and "answer" in part) or any(isinstance(key, str) and _ID.match(key) for key in keys)


def _pairs(whole: Any) -> list[tuple[Any, Any]]:
    """Return the ids and the answers of a call; None stands for a missing id."""
    mappings = [whole] if isinstance(whole, Mapping) else whole
    if not isinstance(mappings, list | tuple) or not all(isinstance(part, Mapping) for part in mappings):
        return [(None, whole)]
    pairs: list[tuple[Any, Any]] = []
    for mapping in mappings:
        ids = [mapping[name] if "answer" in mapping else None for name in _ID_NAMES if name in mapping]
        pairs += [(ids[0], mapping.get("answer"))] if ids else mapping.items()
    return pairs


def _decode(data: Any) -> Any:
    """Return the object or the list in a JSON text, or any other data unchanged."""
    if not isinstance(data, str):
        return data
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data
    return value if isinstance(value, dict | list) else data


def _single_answers(name: str, answer: Any) -> list[tuple[str, Any]]:
    effect_ids = _split_id(name.strip())
    if len(effect_ids) == 1:
        return [(effect_ids[0], answer)]
    several = _decode(answer)
    answers: list[Any] = list(several) if isinstance(several, list | tuple) else [answer]
    if len(answers) > len(effect_ids):
        raise UsageError(
            f"{name[:60]} takes at most {len(effect_ids)} answers, not {len(answers)}", option="answers"
        )
    return list(zip(effect_ids, answers, strict=False))


def _split_id(name: str) -> list[str]:
    if found := _RANGE.fullmatch(name):
        first, last = int(found[1]), int(found[2])
        if 0 <= last - first < _MAX_COUNT:
            return [f"e{number}" for number in range(first, last + 1)]
    return [part.strip() for part in name.split(",") if part.strip()] or [name]


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
