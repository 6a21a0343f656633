"""A comparison in a real browser: as a file, and as the live table of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.compare.comparison import Comparison
from reasonry.compare.problem_set import open_dataset
from reasonry.surfaces.web.html_page import html_page
from tests.surfaces.http.serving import serve_in_thread

from .live import Live
from .making import elsewhere

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from .conftest import Shown

HOSTILE = "<img src=x onerror='broken = 1'><script>broken = 2</script> \u202egnp.exe [x](javascript:broken=3)"


def compare(store: str, names: list[str], size: int = 3) -> tuple[str, dict[str, Any]]:
    async def work() -> tuple[str, dict[str, Any]]:
        async with App(store) as app:
            problems = open_dataset(f"game24:{size}")
            offline = RunRequest(participants=Participants(model="offline"))
            made = Comparison(app, problems, names, offline)
            return made.id, (await made.run()).document()

    return elsewhere(work())


def test_a_file_shows_the_standings_the_costs_and_each_problem_and_only_as_text(show: Shown) -> None:
    _, document = compare("memory", ["best_of_n", "step_back"])
    document["items"][0]["problem"] = document["trials"][0]["answer"] = HOSTILE
    page = show.open_file(html_page(document))
    text = page.locator("body").inner_text()
    assert "3 of 3" in text
    assert "0 of 3" in text
    assert "gnp.exe" in text
    assert page.evaluate("typeof broken") == "undefined"
    assert page.locator("svg circle").count() == 2
    assert page.locator(".problems tbody tr").count() == 3
    page.get_by_role("button", name="All wrong 0").click()
    assert page.locator(".problems").count() == 0
    page.get_by_role("button", name="Failed 3").click()
    assert page.locator('.place[data-right="false"]').count() == 3


def test_the_table_of_a_server_filters_and_opens_a_run(browser: Browser, tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    id, document = compare(store, ["best_of_n", "step_back"], 2)
    with serve_in_thread(store) as server:
        live = Live(browser.new_page(), server.url)
        page = live.open(f"#/sessions/{id}")
        page.locator(".problems tbody tr").nth(1).wait_for()
        page.get_by_role("button", name="They differ 2").click()
        assert page.url.endswith(f"#/comparisons/{id}?show=differ")
        page.locator('.place[data-right="true"]').first.click()
        page.wait_for_url(f"**/#/runs/{document['trials'][0]['run_id']}")
        assert live.troubles == []
        page.close()
