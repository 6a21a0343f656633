"""The schema of the API as one page of plain HTML: every operation, and every schema that it names."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_NAMED = re.compile(r"#/components/schemas/(\w+)")


def reference_page(document: Schema) -> str:
    """Return the page of an OpenAPI document; it has no script and no style, and loads nothing."""
    info = document["info"]
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    )
    title = html.escape(f"{info['title']} {info['version']}: the HTTP API")
    about = html.escape(info["description"])
    return "\n".join([f"{head}<title>{title}</title><h1>{title}</h1><p>{about}</p>", *_sections(document)])


def _sections(document: Schema) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"<h2>{method.upper()} {html.escape(path)}</h2>"
            yield f"<p>{html.escape(operation['summary'])} {html.escape(operation['description'])}</p>"
            parts = ("parameters", "requestBody", "responses")
            yield _data({name: operation[name] for name in parts if operation.get(name)})
    for name, schema in document["components"]["schemas"].items():
        yield f'<h2 id="{name}">{name}</h2>{_data(schema)}'


def _data(value: Schema) -> str:
    text = html.escape(json.dumps(value, indent=2), quote=False)
    linked = _NAMED.sub(r'<a href="#\1">\1</a>', text)
    return f"<pre>{linked}</pre>"
