"""The page over MCP: as data to clients that show pages, as a file to all others."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reasonry.surfaces.web.page import PageDocument

from ..web.laws import check_page
from ..web.making import page_in
from .raw import ENVELOPE, Raw

UI = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
URI = "ui://reasonry/page.html"


def test_a_client_that_shows_pages_is_given_the_page_and_its_model_a_summary() -> None:
    with Raw(capabilities=UI) as raw:
        tool = raw.tools()["show"]
        assert tool["_meta"] == {"ui": {"resourceUri": URI}, "ui/resourceUri": URI}
        assert URI in [entry["uri"] for entry in raw.ask("resources/list")["result"]["resources"]]
        (content,) = raw.ask("resources/read", {"uri": URI})["result"]["contents"]
        assert content["mimeType"] == "text/html;profile=mcp-app"
        assert page_in(content["text"]) is None
        session = raw.think(1, thought="</script><!-- a", branchId="b")["sessionId"]
        result = raw.ask("tools/call", {"name": "show", "arguments": {}})["result"]
        told = json.loads(result["content"][0]["text"])
        assert (told["kind"], told["id"]) == ("session", session)
        assert "page" not in told
        assert "path" not in told
        page = msgspec.convert(result["structuredContent"]["page"], PageDocument)
        check_page(page)
        assert page.nodes[-1].text == "</script><!-- a"


def test_any_other_client_is_given_the_path_of_a_file(tmp_path: Path) -> None:
    with Raw(REASONRY_PAGES=str(tmp_path / "pages")) as raw:
        assert "_meta" not in raw.tools()["show"]
        assert URI not in [entry["uri"] for entry in raw.ask("resources/list")["result"]["resources"]]
        started = raw.call("coach", action="start", problem="What is 6 * 7?", strategy="tree_of_thoughts")
        shown = raw.call("show")
        assert (shown["kind"], shown["id"], shown["status"]) == ("run", started["run_id"], "active")
        path = Path(shown["path"])
        assert path.parent == tmp_path / "pages"
        assert page_in(path.read_text("utf-8"))["id"] == started["run_id"]
        assert raw.call("show", id="no-such")["error"]["code"] == "not_found"
        assert raw.call("show", id=started.get("session_id", "last"))["kind"]


def test_the_stateless_version_says_it_with_each_request() -> None:
    with Raw(greet=None) as raw:
        showing = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": UI}
        for meta in (showing, ENVELOPE):
            tools = raw.ask("tools/list", {"_meta": meta})["result"]["tools"]
            assert ["show"] * (meta is showing) == [tool["name"] for tool in tools if "_meta" in tool]


@pytest.mark.parametrize(
    "capabilities",
    [
        {"extensions": []},
        {"extensions": {"io.modelcontextprotocol/ui": None}},
        {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": "text/html;profile=mcp-app"}}},
        {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}},
    ],
)
def test_what_declares_no_pages_is_told_of_none(capabilities: dict[str, Any]) -> None:
    with Raw(capabilities=capabilities) as raw:
        assert "_meta" not in raw.tools()["show"]
