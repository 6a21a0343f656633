"""A guided session kept in memory, to try its rules on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reasonry.core.strategy import Stage, Strategy
from reasonry.guided.lines import Place
from reasonry.guided.thinking_tool import ThinkingCall
from reasonry.guided.thought import Placed, open_session, submit


class TakenThoughts:
    """All thoughts so far, in a list."""

    def __init__(self) -> None:
        self.taken: list[Place] = []

    def with_number(self, number: int) -> Iterable[Place]:
        return [place for place in self.places() if place.number == number]

    def places(self) -> Iterable[Place]:
        return reversed(self.taken)

    def add(self, number: int, placed: Placed) -> None:
        self.taken.append(Place(number, placed.branch, placed.record.stage, len(self.taken) + 1))


class Session:
    """A session kept in memory, to try the rules on."""

    def __init__(self, strategy: Strategy[Any, Any], *, begun: bool = True) -> None:
        self.strategy, self.head = strategy, open_session(strategy if begun else None)
        self.past = TakenThoughts()

    def think(self, number: int = 1, total: int = 5, **more: Any) -> Placed:
        """Hand in a thought; what is refused raises."""
        whole = {"next_thought_needed": True, **more}
        call = ThinkingCall(thought="…", thought_number=number, total_thoughts=total, **whole)
        placed = submit(self.strategy, self.head, call, self.past)
        self.head = placed.head
        self.past.add(number, placed)
        return placed


def filled(stage: Stage[Any]) -> dict[str, Any]:
    """Return legal data for a stage."""
    example = stage.example or {}
    return {
        field.name: example[field.name] if field.check else legal_value(field.schema)
        for field in stage.fields
        if field.required
    }


def legal_value(schema: Any) -> Any:
    """Return a value that fits a field's schema."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type", "string"):
        case "string":
            return "x" * max(schema.get("minLength", 1), 1)
        case "boolean":
            return True
        case "number" | "integer":
            return schema.get("minimum", schema.get("maximum", 1))
        case "array":
            return [legal_value(schema.get("items", {}))] * max(schema.get("minItems", 1), 1)
        case _:
            parts = schema.get("properties", {})
            return {name: legal_value(parts[name]) for name in schema.get("required", ())}
