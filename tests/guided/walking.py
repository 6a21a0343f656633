"""A guided session kept in memory, to try its rules on."""

from typing import Any

from reasonry.core.strategy import Stage, Strategy
from reasonry.guided.lines import Head, RowsView, ThoughtLine, encode
from reasonry.guided.placement import Placed, submit
from reasonry.guided.thinking_tool import ThinkingCall
from reasonry.records import ThoughtRow


class Session:
    """A session kept in memory, to try the rules on."""

    def __init__(self, strategy: Strategy[Any, Any], *, begun: bool = True) -> None:
        self.strategy, self.head = strategy, Head(ThoughtLine(strategy.first if begun else ""))
        self.view = RowsView()

    def think(self, number: int = 1, total: int = 5, **more: Any) -> Placed:
        """Hand in a thought; what is refused raises."""
        whole = {"next_thought_needed": True, **more}
        call = ThinkingCall(thought="…", thought_number=number, total_thoughts=total, **whole)
        placed = submit(self.strategy, self.head, call, self.view)
        self.head = placed.head
        seq = len(self.view.rows) + 1
        self.view.add(ThoughtRow(seq, number, call.thought, placed.branch, encode(placed.record)))
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
