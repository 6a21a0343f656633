"""The assets put together to one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any

import reasonry

ASSETS = Path(reasonry.__file__).parent / "surfaces" / "web" / "assets"


def joined_script() -> str:
    done: set[str] = set()
    parts: list[str] = []

    def add(name: str) -> None:
        if name in done:
            return
        done.add(name)
        text = (ASSETS / f"{name}.js").read_text("utf-8")
        for needed in re.findall(r'^import \{[^}]*\} from "\./(\w+)\.js";$', text, re.MULTILINE):
            add(needed)
        text = re.sub(
            r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', r"const \1 = $\2;", text, flags=re.MULTILINE
        )
        names = re.findall(r"^export (?:const|function\*?) (\w+)", text, re.MULTILINE)
        text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
        parts.append(f"const ${name} = (() => {{\n{text}return {{ {', '.join(names)} }};\n}})();")

    add("main")
    return "\n".join(parts)


def joined_page(document: Any) -> str:
    script = joined_script()
    style = "\n".join(path.read_text("utf-8") for path in sorted(ASSETS.glob("*.css")))
    data = json.dumps(document, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    sources = f"script-src {digest(script)}; style-src {digest(style)}"
    policy = f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    parts = {"policy": policy, "title": html.escape((document or {}).get("title", "Reasonry"))}
    parts |= {"style": style, "document": data, "script": script}
    template = (ASSETS / "page.html").read_text("utf-8")
    return re.sub(r"@@(\w+)@@", lambda found: parts[found[1]], template)


def digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
