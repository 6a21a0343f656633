"""The live page in a real browser, on a real server: begun from its form, watched, answered, guarded."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.records import JobOptions
from tests.servers import ChatRequest, ModelServer
from tests.surfaces.http.serving import TOKENS, Serving, serve_in_thread

from .live import Live
from .making import elsewhere, grower

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

PUZZLE = "Use 4, 9, 10 and 13 to make 24"
HARBOUR = "Where should the harbour have its gate?"
CHOOSING = Path(__file__).parents[3] / "docs" / "choosing.md"
HOSTILE = "<img src=x onerror='broken = 1'><script>broken = 2</script> \u202egnp.exe [x](javascript:broken=3)"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live") / "store.db"


@pytest.fixture(scope="module")
def looked() -> threading.Event:
    """Set when the page was looked at; until then the model's fourth reply waits."""
    return threading.Event()


class Watched:
    """What the page has reached of the slow model's run.

    The first reply waits until the page asks for events, the second until the page has drawn what only events bring:
    nodes or a piece of the first. From then on replies stream, and none ends before the page has drawn a piece.
    """

    def __init__(self) -> None:
        self.opened, self.followed, self.drawn = threading.Event(), threading.Event(), threading.Event()


@pytest.fixture(scope="module")
def watched() -> Watched:
    return Watched()


@pytest.fixture(scope="module")
def server(store: Path, looked: threading.Event, watched: Watched) -> Iterator[Serving]:
    grow = grower(3)

    def reply(request: ChatRequest) -> Any:
        if request.number > 3:
            looked.wait(20)
        return grow(request)

    def reply_when_watched(request: ChatRequest) -> Any:
        (watched.opened if request.number == 1 else watched.followed).wait(20)
        return grow(request)

    with (
        ModelServer(reply=reply) as usual,
        ModelServer(reply=reply_when_watched, hold=watched.drawn) as slow,
    ):
        models = {"REASONRY_MODELS": f"{usual.model},slow={slow.model}", "REASONRY_MODEL": usual.model}
        with serve_in_thread(str(store), environ=models) as started:
            yield started


@pytest.fixture(scope="module")
def window(browser: Browser, server: Serving) -> Iterator[Live]:
    context = browser.new_context()
    yield Live(context.new_page(), server.url)
    context.close()


@pytest.fixture
def live(window: Live) -> Iterator[Live]:
    """The window; an error, a word on the console or a request elsewhere fails the test."""
    window.troubles.clear()
    yield window
    assert window.troubles == []


def begin(server: Serving, problem: str, **order: Any) -> str:
    """Begin a run as a program does, a search among thoughts; return its id."""
    order = {"problem": problem, "strategy": "tree_of_thoughts", **order}
    reply = server.client().post("/api/runs", json=order)
    assert reply.status_code == 201
    return reply.json()["run_id"]


def texts(page: Page, selector: str) -> list[str]:
    return [found.inner_text() for found in page.query_selector_all(selector)]


def test_an_empty_store_says_what_it_is_for_and_runs_an_example(live: Live, server: Serving) -> None:
    page = live.open()
    page.wait_for_selector("text=Nothing here yet.")
    page.wait_for_selector("text=reasonry setup")
    page.click("text=Try an example")
    page.wait_for_selector("#outcome .answer >> text== 24")
    (run,) = server.client().get("/api/runs").json()["runs"]
    assert (run["model"], run["outcome"]) == ("offline", "solved")
    page.click("[role=treeitem] >> nth=2")
    assert page.url.startswith(f"{server.url}/#/runs/{run['run_id']}/node")


def test_a_run_begun_from_the_form_grows_until_it_meets_its_limit(
    live: Live, server: Serving, looked: threading.Event
) -> None:
    page = live.open("#/new")
    page.wait_for_selector("#model option:nth-child(2)", state="attached")
    page.fill("#problem", HARBOUR)
    page.select_option("#strategy", "tree_of_thoughts")
    page.click("text=Options")
    page.fill("#option-max_depth", "400")
    page.click("text=Start")
    assert "max depth" in page.inner_text("[role=alert]")
    page.fill("#option-max_depth", "9")
    page.fill("#limit-calls", "7")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("[role=treeitem] >> nth=2")
    assert page.query_selector(".status[data-status=active]")
    nodes = len(page.query_selector_all("[role=treeitem]"))
    looked.set()
    page.wait_for_selector(".status[data-status=answered]")
    assert len(page.query_selector_all("[role=treeitem]")) > nodes
    assert page.inner_text(".meter.full .value") == "7 of 7"
    run_id = page.url.split("/")[-1]
    run = server.client().get(f"/api/runs/{run_id}").json()
    assert run["termination"]["reason"] == "max_calls"
    assert run["options"]["max_depth"] == 9
    node = page.get_attribute("[role=treeitem] >> nth=2", "data-id")
    page.reload()
    page = live.open(f"#/runs/{run_id}/{node}")
    page.wait_for_selector(f"[role=treeitem][aria-selected=true][data-id='{node}']")


def test_an_address_of_the_list_changes_what_the_list_shows(live: Live, server: Serving) -> None:
    for problem in ("What is rain?", "What is snow?"):
        begin(server, problem, mode="coached")
    page = live.open("#/?query=rain&kind=runs")
    page.wait_for_selector("text=1 found")
    assert "snow" not in "".join(texts(page, ".rows tbody tr"))
    live.open("#/?query=snow")
    page.wait_for_selector(".rows >> text=What is snow?")
    assert (page.input_value("#find"), page.input_value("[aria-label=Kind]")) == ("snow", "")
    live.open("#/")
    page.wait_for_selector(".rows >> text=What is rain?")
    assert page.input_value("#find") == ""
    page.click(".rows th button:has-text('Problem')")
    page.wait_for_url("**sort=problem**")
    titles = [title.casefold() for title in texts(page, ".rows .title")]
    assert titles == sorted(titles)
    page.select_option("[aria-label=Outcome]", "waiting")
    page.wait_for_selector(".rows tr .status >> text=Waiting for you")
    page.fill("#find", "zzzz")
    page.wait_for_selector("text=Nothing matches “zzzz”")
    page.click("text=Clear the search and filters")
    page.wait_for_selector(".rows >> text=What is rain?")
    live.open("#/sessions/none")
    page.wait_for_selector("#problem >> text=cannot be shown")


def test_a_batch_is_one_row_until_it_is_filtered(live: Live, server: Serving) -> None:
    for number in range(10):
        begin(server, f"Use 1, 2, 3, {number + 3} to make {number + 9}", model="offline")
    page = live.open("#/")
    # The puzzle of another test may be one of the batch.
    page.wait_for_selector(r".rows .of-answer >> text=/1\d solved/")
    assert re.match("Batch of 1[01] runs, from “Use 1, 2, 3, ", texts(page, ".rows .title")[0])
    assert texts(page, ".rows .day")[0] == "Today"
    page.click(".rows .others[title$='of this batch']")
    page.wait_for_selector(".rows .member >> nth=8")
    page.wait_for_selector("[aria-label=Model] option[value=offline]:has-text('(1')", state="attached")
    page.wait_for_selector("[aria-label=Outcome] option[value=solved]:has-text('(')", state="attached")
    page.select_option("[aria-label=Model]", "offline")
    page.wait_for_selector(".rows .others[title$='of this batch']", state="detached")
    page.wait_for_selector(".rows tbody tr >> nth=9")
    page.select_option("[aria-label=Cost]", "1")
    page.wait_for_selector("text=Nothing matches these filters.")
    assert "cost=1" in page.url
    live.open("#/")


def test_on_a_phone_a_row_has_two_lines(live: Live, server: Serving) -> None:
    begin(server, f"What is {'very ' * 30}far?", mode="coached")
    page = live.open("#/?query=very")
    page.set_viewport_size({"width": 390, "height": 844})
    row = page.locator(".rows tbody tr:not(.day)").first
    row.wait_for()
    assert row.evaluate("(item) => item.offsetHeight") <= 56
    assert row.locator(".title").evaluate("(item) => item.offsetWidth") > 300
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1440, "height": 900})


def test_runs_of_two_problems_show_both_and_compare_no_figures(live: Live, server: Serving) -> None:
    problems = ["Use 3, 3, 8 and 8 to make 24", "Use 4, 9, 10 and 13 to make 24"]
    begun = [begin(server, problem, model="offline") for problem in problems]
    for run_id in begun:
        live.open(f"#/runs/{run_id}").locator(".status[data-status='solved']").wait_for()
    page = live.open(f"#/compare/{'/'.join(begun)}")
    page.wait_for_selector("text=The runs solve different problems")
    assert texts(page, ".side .problem") == problems
    assert "%" not in page.inner_text("main")


def test_a_run_that_would_end_the_same_way_again_is_not_to_be_resumed(live: Live, server: Serving) -> None:
    page = live.open(f"#/runs/{begin(server, 'Use 2, 2 and 2 to make 99', model='offline')}")
    page.wait_for_selector(".status[data-status=unsolved]")
    assert page.is_visible("text=Compare …")
    assert not page.locator("button", has_text="Resume").filter(visible=True).count()


def test_a_coached_run_is_answered_in_the_page(live: Live) -> None:
    page = live.open("#/new?problem=What%20is%2017%20%2B%2025%3F&strategy=chain_of_thought")
    page.wait_for_selector("#model option:nth-child(2)", state="attached")
    page.select_option("#model", "offline")
    assert "number puzzles only" in page.inner_text("#power")
    page.click(".order button.main")
    page.wait_for_selector(".wrong >> text=only solves number puzzles")
    page.select_option("#model", "coached")
    assert page.inner_text("#power") == ""
    page.click(".order button.main")
    asked = page.locator(".asked")
    asked.locator(".problem >> text=What is 17 + 25?").wait_for()
    assert not asked.locator("pre").is_visible(), "how a model is asked is folded"
    asked.locator("textarea[id^=answer-]").evaluate(
        "(field) => field.closest('details')?.setAttribute('open', '')"
    )
    page.fill(".asked textarea[id^=answer-]", '{"steps": []}')
    page.click(".asked .main")
    page.wait_for_selector(".asked .wrong:not([hidden])")
    assert page.input_value(".asked textarea[id^=answer-]") == '{"steps": []}'
    page.fill(".asked textarea[id^=answer-]", "17 + 25 = 42. <answer>42</answer>")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".status[data-status=answered]")
    assert page.inner_text("#outcome .answer") == "42"
    assert page.is_hidden(".asked")


def test_a_run_is_drawn_while_it_is_answered_and_ends_as_its_file_shows_it(
    live: Live, server: Serving, watched: Watched
) -> None:
    page = live.open()
    run_id = begin(server, HARBOUR, options={"max_depth": 2}, model="slow")
    with page.expect_response(lambda response: response.url.partition("?")[0].endswith(f"{run_id}/events")):
        page.goto(f"{server.url}/#/runs/{run_id}")
    watched.opened.set()
    piece = page.locator("#waiting .piece", has_text=re.compile('"(scores|thoughts)": '))
    page.locator("[role=treeitem] >> nth=2").or_(piece).first.wait_for()
    watched.followed.set()
    piece.first.wait_for()
    watched.drawn.set()
    page.locator(".status[data-status='answered']").wait_for()
    assert page.locator("#waiting").is_hidden()
    made = server.client().get(f"/api/runs/{run_id}/page").json()
    nodes = page.locator("[role=treeitem]").evaluate_all("(items) => items.map((item) => item.dataset.id)")
    assert sorted(nodes) == sorted(node["id"] for node in made["nodes"])
    assert made["answer"] in page.inner_text("#outcome")


def test_a_coached_run_is_begun_limited_and_answered_without_a_pointer(live: Live, server: Serving) -> None:
    page = live.open("#/new")
    page.locator("#model option", has_text="you answer").wait_for(state="attached")
    for name in page.locator("#model option").all_inner_texts():
        assert "//" not in name
    page.select_option("#model", "coached")
    page.select_option("#strategy", "chain_of_thought")
    page.fill("#problem", HARBOUR)
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


def test_a_large_tree_opens_at_its_answer(live: Live, server: Serving, looked: threading.Event) -> None:
    looked.set()
    options = {"max_depth": 6, "branching_factor": 3}
    run_id = begin(server, HARBOUR, options=options, budget={"calls": 100})
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
    page.set_viewport_size({"width": 1440, "height": 900})


def test_a_fork_asks_in_other_words_and_is_compared_with_its_run(
    live: Live, server: Serving, looked: threading.Event
) -> None:
    looked.set()
    first = begin(server, HARBOUR, options={"max_depth": 2})
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


def test_a_form_for_people_makes_the_answer_that_a_stage_wants(live: Live, server: Serving) -> None:
    run_id = begin(server, "Which bridge first?", mode="coached")
    page = live.open(f"#/runs/{run_id}")
    page.wait_for_selector(".asked .entry")
    steps = page.locator(".asked .entry textarea")
    scores = page.locator(".asked .entry input")
    assert steps.count() == scores.count() == 3
    for number in range(2):
        steps.nth(number).fill(f"Close bridge {number + 1}")
        scores.nth(number).fill(f"0.{number + 5}")
    page.click(".asked .main")
    page.wait_for_selector("[role=treeitem] >> text=Close bridge 2")
    thoughts = {
        one["text"]: one["score"] for one in server.client().get(f"/api/runs/{run_id}/page").json()["nodes"]
    }
    assert (thoughts["Close bridge 1"], thoughts["Close bridge 2"]) == (0.5, 0.6)


def test_the_form_of_a_new_run_is_filled_in_for_who_is_new(live: Live) -> None:
    page = live.open("#/")
    page = live.open("#/new")
    page.click(".chips button >> nth=0")
    assert page.input_value("#problem") == PUZZLE
    assert page.input_value("#limit-calls") == "30"
    page.wait_for_selector("#strategy option[value=analysis]", state="attached")
    documented = re.findall(r"^\| `(\w+)` \| (\d+) \| \d+ \|", CHOOSING.read_text("utf-8"), re.MULTILINE)
    assert documented
    for name, calls in documented:
        page.select_option("#strategy", name)
        assert f"about {calls} call" in page.inner_text("#about")


def test_what_others_write_shows_at_once_and_only_as_text(live: Live, server: Serving, store: Path) -> None:
    page = live.open()
    page.wait_for_selector(".rows", state="attached")

    async def think(number: int, session: str | None) -> str:
        call = {
            "thought": HOSTILE if number == 1 else f"Thought {number}",
            "thought_number": number,
            "total_thoughts": 3,
        }
        call |= {"next_thought_needed": True} | ({"session_id": session} if session else {})
        async with App(str(store)) as other:
            return (await other.sessions().think(call))["session_id"]

    session = elsewhere(think(1, None))
    page.wait_for_selector(f"a[href='#/sessions/{session}']", timeout=2_000)
    assert page.inner_text(f"a.title[href='#/sessions/{session}']").startswith("<img src=x onerror=")
    others, own = (
        server.client().get(f"/api/sessions?guided={guided}").json()["sessions"]
        for guided in ("false", "true")
    )
    assert [one["session_id"] for one in own] == [session]
    assert all(one["run_id"] for one in others)
    page.keyboard.press("/")
    page.keyboard.type("onerror")
    page.wait_for_url("**query=onerror**")
    page.wait_for_selector(".rows tbody .day + tr:last-child")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=treeitem]")
    elsewhere(think(2, session))
    page.wait_for_selector("text=Thought 2", timeout=2_000)
    assert page.evaluate("window.broken") is None
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    page.click(".menu summary")
    page.click("text=Delete this session")
    page.click("dialog .main")
    page.wait_for_selector(".rows", state="attached")
    page.wait_for_selector(f"a[href='#/sessions/{session}']", state="detached")


def test_the_list_says_what_waits_what_can_be_resumed_and_who_works(browser: Browser, folder: Path) -> None:
    store = str(folder / "runs.db")

    async def wait_here() -> None:
        async with App(store, environ={}) as app:
            for problem, owner, job in (
                ("12 + 30", "ben", JobOptions()),
                ("12 + 30", "ben", JobOptions()),
                ("13 + 31", "ana", None),
            ):
                offline = Participants(model="offline")
                order, _ = app.order(RunRequest(problem=problem, strategy="linear", participants=offline))
                await app.for_owner(owner).engine.accept(order, job=job)

    elsewhere(wait_here())
    with serve_in_thread(store, tokens=TOKENS, concurrency=0) as server:
        context = browser.new_context()
        live = Live(context.new_page(), server.url)
        page = live.open()
        page.fill("#token", TOKENS["ana"])
        page.keyboard.press("Enter")
        line = page.inner_text("p:has-text('queued')")
        assert re.fullmatch(r"0 workers · 2 queued, oldest [\d.]+ m?s", line)
        assert page.inner_text("tr:has-text('13 + 31') .status").casefold() == "resumable"
        told = server.client(TOKENS["ana"]).get("/api/queue").json()
        assert {**told, "oldest_s": 0} == {"depth": 2, "oldest_s": 0, "workers": 0}
        context.close()
        assert live.troubles == []


def test_a_lost_server_is_said_and_found_again(live: Live, server: Serving) -> None:
    begin(server, "Which bridge first?", mode="coached")
    page = live.open()
    page.wait_for_selector(".rows")
    page.context.set_offline(True)
    page.wait_for_selector("#connection:not([hidden])")
    page.context.set_offline(False)
    page.wait_for_selector("#connection", state="hidden")
    live.open("#/runs/unknown")
    page.wait_for_selector("text=no run 'unknown'")


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    with serve_in_thread(tokens=TOKENS) as started:
        yield started


def test_a_token_is_asked_for_and_kept_in_memory_alone(browser: Browser, guarded: Serving) -> None:
    context = browser.new_context()
    live = Live(context.new_page(), guarded.url)
    page = live.open("#/new")
    page.fill("#token", "not this one")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog >> text=does not know this token")
    page.fill("#token", TOKENS["ana"])
    page.keyboard.press("Enter")
    page.fill("#problem", PUZZLE)
    page.select_option("#model", "offline")
    page.keyboard.press("Control+Enter")
    page.focus("#problem")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".status[data-status=solved]")
    kept = page.evaluate(
        "JSON.stringify([location.href, {...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert TOKENS["ana"] not in kept
    page.reload()
    page.wait_for_selector("#token")
    context.close()
    assert live.troubles == []
