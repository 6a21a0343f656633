"""The clothes that models put on what they say: the same reply with other keys, in YAML, as text for a list …"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

Schema = Mapping[str, Any]
Change = Callable[[Any, Schema], str | None]
"""From a reply and its form to the reply as somebody else writes it; None: it has nothing to change."""


def parts(value: Any, schema: Schema, change: Callable[[Any, Schema], Any]) -> Any:
    """Return a reply with every value changed that is itself no object or list of objects."""
    shape = next((form for form in schema.get("anyOf", (schema,)) if _is_of(value, form)), schema)
    if not isinstance(value, str) and any(_is_of("", form) for form in schema.get("anyOf", ())):
        # What may be text, too, says something else as text.
        return value
    if isinstance(value, dict) and shape.get("properties"):
        return {name: parts(item, shape["properties"].get(name, {}), change) for name, item in value.items()}
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return [parts(item, shape.get("items", {}), change) for item in value]
    return change(value, shape)


def _is_of(value: Any, form: Schema) -> bool:
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": int | float,
        "null": type(None),
    }
    kind = form.get("type")
    return ("enum" in form and value in form["enum"]) or (
        isinstance(kind, str) and isinstance(value, kinds[kind])
    )


def renamed(value: Any, schema: Schema, rename: Callable[[str], str]) -> Any:
    """Return a reply whose keys are written otherwise; those of free objects stay."""
    shape = next((form for form in schema.get("anyOf", (schema,)) if _is_of(value, form)), schema)
    properties = shape.get("properties", {})
    if isinstance(value, dict):
        return {
            rename(key) if key in properties else key: renamed(item, properties.get(key, {}), rename)
            for key, item in value.items()
        }
    items = shape.get("items", {})
    return [renamed(item, items, rename) for item in value] if isinstance(value, list) else value


def words(key: str) -> list[str]:
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", key).lower().split("_")


def keys(rename: Callable[[str], str]) -> Change:
    return lambda data, schema: json.dumps(renamed(data, schema, rename))


def values(change: Callable[[Any, Schema], Any]) -> Change:
    def written(data: Any, schema: Schema) -> str | None:
        changed = parts(data, schema, change)
        return None if changed == data else json.dumps(changed)

    return written


def as_words(yes: Any, no: Any) -> Callable[[Any, Schema], Any]:
    return lambda value, _: (yes if value else no) if isinstance(value, bool) else value


def number_as_text(value: Any, schema: Schema) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and schema.get("type") in ("integer", "number") else value


def choice(rewrite: Callable[[str], str]) -> Callable[[Any, Schema], Any]:
    return lambda value, schema: rewrite(value) if isinstance(value, str) and "enum" in schema else value


def list_as_text(mark: Callable[[int], str]) -> Callable[[Any, Schema], Any]:
    def change(value: Any, _: Schema) -> Any:
        is_list = (
            isinstance(value, list)
            and value
            and all(isinstance(item, str) and item.strip() for item in value)
        )
        return "\n".join(f"{mark(place)}{item}" for place, item in enumerate(value, 1)) if is_list else value

    return change


def null_as(word: str) -> Callable[[Any, Schema], Any]:
    return lambda value, _: word if value is None else value


def as_yaml(data: Any, _: Schema) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000)


SAME_MEANING: dict[str, Change] = {
    "as asked": lambda data, _: json.dumps(data),
    "spread out": lambda data, _: json.dumps(data, indent=2),
    "in a fence": lambda data, _: f"```json\n{json.dumps(data, indent=2)}\n```",
    "after a sentence": lambda data, _: f"Here is my reply:\n\n{json.dumps(data)}",
    "before politeness": lambda data, _: f"{json.dumps(data)}\n\nLet me know if you need anything else!",
    "after thinking": lambda data, _: f'<think>\nIs it {{"answer": 7}}? No.\n</think>\n{json.dumps(data)}',
    "in an object": lambda data, _: json.dumps({"response": data}),
    "in a list": lambda data, _: json.dumps([data]),
    "with a comma too many": lambda data, _: f"{json.dumps(data)[:-1]},}}",
    "with a remark beside": lambda data, _: json.dumps({**data, "remark_of_mine": "none"}),
    "as Python": lambda data, _: repr(data),
    "as YAML": as_yaml,
    "as YAML in a fence": lambda data, schema: f"```yaml\n{as_yaml(data, schema)}```",
    "snake_case": keys(lambda key: "_".join(words(key))),
    "camelCase": keys(lambda key: words(key)[0] + "".join(word.capitalize() for word in words(key)[1:])),
    "PascalCase": keys(lambda key: "".join(word.capitalize() for word in words(key))),
    "Title Case": keys(lambda key: " ".join(word.capitalize() for word in words(key))),
    "UPPER_CASE": keys(lambda key: "_".join(words(key)).upper()),
    "kebab-case": keys(lambda key: "-".join(words(key))),
    "yes and no": values(as_words("yes", "no")),
    "Yes. and No.": values(as_words("Yes.", "No.")),
    "True and False as text": values(as_words("True", "False")),
    "1 and 0": values(as_words(1, 0)),
    "numbers as text": values(number_as_text),
    "choices in lower case": values(choice(str.lower)),
    "choices in capitals": values(choice(str.upper)),
    "choices with a period": values(choice(lambda word: f"{word}.")),
    "choices without underscores": values(choice(lambda word: word.replace("_", " "))),
    "a numbered list": values(list_as_text(lambda place: f"{place}. ")),
    "a bulleted list": values(list_as_text(lambda _: "- ")),
    "null as None": values(null_as("None")),
    "null as n/a": values(null_as("n/a")),
}
