"""YAML edited in place: an entry is added after the last one of its mapping, and taken out line by line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from .json_text import line_end


def read(text: str) -> dict[str, Any]:
    """Return the data of a text.

    Raises:
        ValueError: It is no YAML, or no mapping.
    """
    try:
        data = _reader().load(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ValueError("it holds no mapping")
    return data


def put(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with an entry: in place of the one there, else at the end of its mapping.

    Raises:
        ValueError: What stands on the way to it is no mapping.
    """
    if (there := _chain(text, keys)) and len(there) == len(keys):
        text = drop(text, keys, 0)
        there = _chain(text, keys)
    if not there:
        root = _compose(text)
        if isinstance(root, MappingNode) and root.flow_style:
            return _into_flow(text, root, keys[0], _nest(keys[1:], value))
        column = 0 if root is None else root.start_mark.column
        return _add_lines(text, len(text), _block(_nest(keys, value), column))
    _, name, node = there[-1]
    inner = _nest(keys[len(there) :], value)
    if isinstance(node, ScalarNode) and node.tag.endswith(":null") and not node.value:
        return _add_lines(text, name.end_mark.index, _block(inner, name.start_mark.column + 2))
    if not isinstance(node, MappingNode):
        raise ValueError(f"{name.value} is no mapping")
    if node.flow_style:
        return _into_flow(text, node, keys[len(there)], inner[keys[len(there)]])
    return _add_lines(text, _end(node), _block(inner, node.value[0][0].start_mark.column))


def drop(text: str, keys: Sequence[str], created: int) -> str:
    """Return the text without an entry; `created` as for JSON."""
    chain = _chain(text, keys)
    if len(chain) < len(keys):
        return text
    while len(chain) > 1 and created > 0 and len(chain[-1][0].value) == 1:
        chain.pop()
        created -= 1
    parent, name, node = chain[-1]
    if parent.flow_style:
        return _out_of_flow(text, parent, name, node)
    start = text.rfind("\n", 0, name.start_mark.index) + 1
    end = _line_stop(text, _end(node))
    if end == len(text) and not text.endswith("\n"):
        start = len(text[:start].removesuffix("\n").removesuffix("\r"))
    rest = text[:start] + text[end:]
    if len(parent.value) == 1 and len(chain) > 1:
        colon = text.index(":", chain[-2][1].end_mark.index) + 1
        rest = rest[:colon] + " {}" + rest[colon:]
    return rest


def _reader() -> YAML:
    return YAML(typ="safe", pure=True)


def _compose(text: str) -> Any:
    return _reader().compose(text)


_Chain = list[tuple[MappingNode, Node, Node]]


def _chain(text: str, keys: Sequence[str]) -> _Chain:
    """Return for each key that is there its mapping, its name and its value."""
    node = _compose(text)
    chain: _Chain = []
    for key in keys:
        if not isinstance(node, MappingNode):
            break
        found = [(name, value) for name, value in node.value if name.value == key]
        if not found:
            break
        chain.append((node, *found[-1]))
        node = found[-1][1]
    return chain


def _nest(keys: Sequence[str], value: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return value


def _block(value: Mapping[str, Any], column: int) -> list[str]:
    """Return the lines of a mapping; what is in lists is written as JSON, which is YAML."""
    lines = list[str]()
    for key, member in value.items():
        if isinstance(member, Mapping) and member:
            lines += [f"{' ' * column}{key}:", *_block(member, column + 2)]
        else:
            lines.append(f"{' ' * column}{key}: {json.dumps(member, ensure_ascii=False)}")
    return lines


def _end(node: Node) -> int:
    """Return where the last word of a node ends; a block's own end is where the next one begins."""
    if isinstance(node, CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return node.end_mark.index


def _line_stop(text: str, place: int) -> int:
    """Return where the line of a place ends, its end included."""
    if place and text[place - 1] == "\n":
        return place
    end = text.find("\n", place)
    return len(text) if end < 0 else end + 1


def _add_lines(text: str, place: int, lines: Sequence[str]) -> str:
    newline = line_end(text)
    stop = _line_stop(text, place)
    block = newline.join(lines)
    if stop == len(text) and text.strip("\ufeff") and not text.endswith("\n"):
        return text + newline + block
    return text[:stop] + block + newline + text[stop:]


def _into_flow(text: str, node: MappingNode, name: str, value: Mapping[str, Any]) -> str:
    member = f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
    if not node.value:
        place = node.start_mark.index + 1
        return text[:place] + member + text[place:]
    place = node.value[-1][1].end_mark.index
    return text[:place] + ", " + member + text[place:]


def _out_of_flow(text: str, parent: MappingNode, name: Node, node: Node) -> str:
    names = [pair[0].start_mark.index for pair in parent.value]
    index = names.index(name.start_mark.index)
    if index + 1 < len(names):
        return text[: names[index]] + text[names[index + 1] :]
    start = parent.value[index - 1][1].end_mark.index if index else parent.start_mark.index + 1
    return text[:start] + text[node.end_mark.index :]
