"""A run in the live page, in a real browser on a real server: followed as it is answered, forked, compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.surfaces.http.serving import Serving, serve_in_thread

from .live import Live
from .making import grower, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

PROBLEM = "How do ships get into the harbour?"


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with (
        serving(grower(2), latency_ms=20) as model,
        serving(grower(2), latency_ms=400, chunk_ms=60) as slow,
        serve_in_thread(
            environ={"REASONRY_MODELS": f"{model},slow={slow}", "REASONRY_MODEL": model}
        ) as started,
    ):
        yield started


def slow_model(server: Serving) -> str:
    """Return the name of the model whose answers come in slow pieces."""
    return server.client().get("/api/models").json()["models"][1]["name"]


@pytest.fixture
def live(browser: Browser, server: Serving) -> Iterator[Live]:
    context = browser.new_context()
    window = Live(context.new_page(), server.url)
    yield window
    context.close()
    assert window.troubles == []


def begin(server: Serving, **more: Any) -> str:
    order = {"problem": PROBLEM, "strategy": "tree_of_thoughts", "options": {"max_depth": 2}, **more}
    begun = server.client().post("/api/runs", json=order)
    assert begun.status_code == 201, begun.text
    return begun.json()["run_id"]


def test_a_run_is_drawn_while_it_is_answered_and_ends_as_its_file_shows_it(
    live: Live, server: Serving
) -> None:
    page = live.open()
    page.evaluate(
        """() => {
            window.pieces = [];
            const note = ({ target }) => target.matches?.(".piece") && window.pieces.push(target.textContent);
            const watcher = new MutationObserver((changes) => changes.forEach(note));
            watcher.observe(document, { subtree: true, childList: true });
        }"""
    )
    run_id = begin(server, options={"max_depth": 1}, model=slow_model(server))
    page.goto(f"{server.url}/#/runs/{run_id}")
    page.locator(".status[data-status='answered']").wait_for()
    assert page.locator("#waiting").is_hidden()
    assert any("scores" in piece for piece in page.evaluate("window.pieces"))
    made = server.client().get(f"/api/runs/{run_id}/page").json()
    drawn = page.locator("[role=treeitem]").evaluate_all("(items) => items.map((item) => item.dataset.id)")
    assert sorted(drawn) == sorted(node["id"] for node in made["nodes"])
    assert made["answer"] in page.inner_text("#outcome")


def test_a_coached_run_is_begun_limited_and_answered_without_a_pointer(live: Live, server: Serving) -> None:
    page = live.open("#/new")
    page.locator("#model option", has_text="you answer").wait_for(state="attached")
    for name in page.locator("#model option").all_inner_texts():
        assert "//" not in name
    page.select_option("#model", "coached")
    page.select_option("#strategy", "chain_of_thought")
    page.fill("#problem", PROBLEM)
    page.keyboard.press("Control+Enter")
    page.locator(".asked :focus").wait_for()
    assert "at the stage sequential reasoning" in page.inner_text("#outcome")
    menu = page.locator(".menu summary")
    remove = page.locator(".menu button", has_text="Delete")
    menu.click()
    assert remove.is_hidden(), "it has not ended"
    menu.click()
    page.locator("#page-tools button", has_text="Limits").click()
    page.fill("#limit-calls", "7")
    page.keyboard.press("Control+Enter")
    page.locator("dialog[open]").wait_for(state="detached")
    run_id = page.url.rpartition("/")[2]
    assert server.client().get(f"/api/runs/{run_id}").json()["budget"]["calls"] == 7
    page.locator("#page-tools button", has_text="Cancel").click()
    menu.click()
    remove.wait_for()


def test_a_large_tree_opens_at_its_answer(live: Live, server: Serving) -> None:
    run_id = begin(server, options={"max_depth": 6, "branching_factor": 3}, budget={"calls": 100})
    live.page.set_viewport_size({"width": 1600, "height": 900})
    page = live.open(f"#/runs/{run_id}")
    page.locator(".status[data-status='answered']").wait_for()
    page.reload()
    page.click("#view-cards")
    at, ground = page.evaluate(
        """() => [document.querySelector("[aria-selected=true]"), document.getElementById("tree")]
            .map((one) => one.getBoundingClientRect())
            .map(({ left, right, top, bottom }) => [left, right, top, bottom])"""
    )
    assert page.evaluate("document.getElementById('tree').scrollWidth") > ground[1] - ground[0]
    assert ground[0] <= at[0] < at[1] <= ground[1]
    assert ground[2] <= at[2] < at[3] <= ground[3]
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".menu summary").click()
    menu = page.locator(".menu > div").bounding_box()
    assert menu is not None
    assert 0 <= menu["x"] < menu["x"] + menu["width"] <= 390, "the menu is whole on a phone"


def test_a_fork_asks_in_other_words_and_is_compared_with_its_run(live: Live, server: Serving) -> None:
    first = begin(server)
    page = live.open(f"#/runs/{first}")
    page.locator(".status[data-status='answered']").wait_for()
    made = server.client().get(f"/api/runs/{first}/page").json()
    chosen = next(one for one in made["questions"] if one["round"] == 3)

    page = live.open(f"#/runs/{first}/{chosen['id']}")
    page.locator(f"#detail details[data-id='{chosen['id']}'] button", has_text="Fork").click()
    before = page.input_value("#fork-prompt")
    page.click("dialog summary:has-text('Limits')")
    assert "seconds, thoughts and nodes count what is reused" in page.inner_text("dialog details[open]")
    assert "reused and cost $0" in page.inner_text("dialog .kept")
    page.fill("#fork-prompt", f"{before}\nThink of the moon.")
    page.click("dialog button[type=submit]")
    page.wait_for_url(lambda address: first not in address)
    page.locator(".status[data-status='answered']").wait_for()
    assert "Reused for $0: " in page.inner_text("#spend")

    page.locator("#page-tools button", has_text="Compare with parent").wait_for()
    page.click("#page-tools button:has-text('Compare …')")
    page.locator("#compare-with option", has_text="forked from").wait_for(state="attached")
    page.click("dialog button[type=submit]")
    page.locator(".alignment").wait_for()
    assert "is a fork of run A" in page.inner_text(".compared")
    assert "Think of the moon." in page.inner_text(".compared .side:last-child pre")
    assert page.locator(".aligned[data-parting]").count() == 1
