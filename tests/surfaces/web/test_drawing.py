"""What people see of a run, in a real browser: drawn, walked, read aloud, kept safe from what is in it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from reasonry.surfaces.web.html_page import html_page

from .documents import EVERY, document, large, node, question, tree
from .making import PUZZLE, elsewhere, solved

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from .conftest import Shown

pytestmark = pytest.mark.slow

WIDE, PHONE = (1440, 900), (390, 844)


def selected(page: Page) -> str | None:
    return page.evaluate("document.querySelector('[role=treeitem][aria-selected=true]')?.dataset.id ?? null")


def drawn_ids(page: Page) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('[role=treeitem]:not([data-id^=\"dropped:\"])')].map((item) => item.dataset.id)"
    )


def render(page: Page, newer: Any) -> None:
    page.evaluate("(newer) => window.reasonry.render(newer)", newer)


@pytest.mark.parametrize("kind", EVERY)
def test_every_kind_is_drawn_within_its_window(show: Shown, kind: str) -> None:
    made = EVERY[kind]()
    for size in (WIDE, PHONE):
        page = show(made, size=size)
        assert page.evaluate("scrollY") == 0
        assert page.inner_text("#problem") == made["problem"].strip()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ids = [one["id"] for one in made["nodes"]]
        assert set(drawn_ids(page)) <= set(ids)
        # The root of a session stands in the head alone.
        assert min(len(ids) - (kind == "session"), 30) <= len(drawn_ids(page)) <= 170


def test_a_run_that_was_made_is_drawn_whole(show: Shown) -> None:
    run = elsewhere(solved("memory", PUZZLE, strategy="tree_of_thoughts", model="offline"))
    page = show.open_file(html_page(run))
    assert page.inner_text("#problem") == PUZZLE
    assert page.inner_text("#outcome .answer").endswith("= 24")
    made = page.evaluate("JSON.parse(document.getElementById('page-data').textContent)")
    assert sorted(drawn_ids(page)) == sorted(one["id"] for one in made["nodes"])
    for one in made["nodes"]:
        page.evaluate("(id) => document.getElementById(`node-${id}`).click()", one["id"])
        shown = page.inner_text("#detail")
        # The problem stands above the tree already.
        assert one["kind"] == "problem" or one["text"] in shown
        assert one["why"] is None or one["why"]["text"] in shown
        about = [each for each in (*made["questions"], *made["calls"]) if each["node"] == one["id"]]
        assert page.evaluate("document.querySelectorAll('#detail .question').length") == len(about)


def test_what_stands_in_a_text_is_never_run(show: Shown) -> None:
    page = show(EVERY["hostile"]())
    for opened in page.query_selector_all("details:not([open]) > summary"):
        opened.click()
    assert page.evaluate("window.broken") is None
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.evaluate("document.querySelectorAll('img, iframe, object, embed, link').length") == 0


@pytest.mark.parametrize(
    "made", [{}, {"nodes": [], "questions": None}, None], ids=["empty", "no nodes", "host"]
)
def test_a_document_without_parts_is_no_error(show: Shown, made: Any) -> None:
    show(made)


def test_a_record_with_lost_parents_and_circles_is_shown_whole(show: Shown) -> None:
    nodes = [
        node("a", "b", "circle"),
        node("b", "a", "circle"),
        node("c", "gone", "lost"),
        node("d", "d", "own"),
    ]
    nodes.append(node("e", "c", "", "unheard_of", why={"code": "new_code"}, merges=["gone"]))
    assert set(drawn_ids(show(document(nodes, [question("q", "gone", None, None)])))) == set("abcde")


def test_the_keyboard_walks_the_whole_tree(show: Shown) -> None:
    page = show(tree())
    order = drawn_ids(page)
    page.focus("[role=treeitem][tabindex='0']")
    page.keyboard.press("Home")
    walked = [selected(page)]
    for _ in order[1:]:
        page.keyboard.press("ArrowDown")
        walked.append(selected(page))
        assert page.evaluate("document.activeElement.dataset.id") == walked[-1]
    assert walked == order
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert selected(page) == "node_1"
    page.keyboard.press("ArrowLeft")  # folds
    assert "node_1.1" not in drawn_ids(page)
    page.keyboard.press("ArrowLeft")  # goes up
    assert selected(page) == "problem"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # unfolds
    assert drawn_ids(page) == order
    page.keyboard.press("End")
    assert selected(page) == order[-1]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.id") == order[-1]
    assert page.evaluate("document.querySelectorAll('[role=treeitem][tabindex=\"0\"]').length") == 1


def test_slash_searches_and_question_mark_helps(show: Shown) -> None:
    page = show(tree())
    page.keyboard.press("/")
    page.keyboard.type("15)")
    assert page.inner_text("#found") == "1 found"
    assert drawn_ids(page) == ["problem", "node_1", "node_1.2"]
    page.keyboard.press("Enter")
    assert selected(page) == "node_1.2"
    page.keyboard.press("Escape")
    assert len(drawn_ids(page)) == 13
    page.focus("[role=treeitem][tabindex='0']")
    page.keyboard.press("?")
    assert page.evaluate("document.getElementById('help').open")
    page.keyboard.press("Escape")
    assert not page.evaluate("document.getElementById('help').open")


def test_dropped_thoughts_can_be_hidden(show: Shown) -> None:
    made = tree()
    page = show(made)
    page.check("text=Hide dropped")
    assert set(drawn_ids(page)) == {one["id"] for one in made["nodes"] if one["state"] != "dropped"}


def test_a_link_points_at_a_thought_or_a_question(show: Shown) -> None:
    assert selected(show(tree())) == "node_1.1.1"
    page = show(tree(), at="#node_4.3")
    assert selected(page) == "node_4.3"
    assert "the limit of 14 nodes came first" in page.inner_text("#detail")
    page.click("#node-problem")
    assert page.evaluate("location.hash") == "#problem"
    asked = show(tree(), at="#q2")
    assert selected(asked) == "node_2"
    prompt = "You solve puzzles, one step at a time.\n\nProblem:\nUse 4, 9, 10 and 13 to make 24"
    assert asked.text_content("#detail details[open] pre") == prompt
    hidden = show(large(), at="#n900")
    assert selected(hidden) == "n900"


def test_a_bar_of_the_timeline_opens_its_question(show: Shown) -> None:
    page = show(tree())
    page.click("#timeline [data-status=failed]")
    node_id = page.evaluate("document.querySelector('#timeline [data-status=failed]').dataset.node")
    assert selected(page) == node_id
    assert "try again in 2 s" in page.inner_text("#detail details[open]")
    assert page.evaluate("document.querySelector('#timeline .chosen').dataset.node") == node_id
    page.focus("#timeline [tabindex='0']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert selected(page) == "node_1"


CONTRASTS = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = numbers(colour).map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (at) => {
    for (; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((numbers(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const at = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || at.closest("script")) continue;
    if (!at.checkVisibility({ visibilityProperty: true })) continue;
    const [a, b] = [luminance(getComputedStyle(at).color), luminance(ground(at))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) low.push(`${at.className} ${walker.currentNode.data.slice(0, 20)} ${ratio.toFixed(2)}`);
  }
  return low;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground(show: Shown, theme: str) -> None:
    page = show(tree(), theme=theme)
    for kind in ("tree", "failed", "vote", "analysis", "session"):
        render(page, EVERY[kind]())
        page.fill("#search", "a")
        assert page.evaluate(CONTRASTS) == [], kind


def test_the_theme_follows_the_system_until_it_is_chosen(show: Shown) -> None:
    page = show(tree(), theme="dark")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#theme")
    light = page.evaluate(ground)
    assert page.get_attribute("#theme", "aria-label") == "Theme: light"
    assert light != dark
    page.click("#theme")
    assert page.evaluate(ground) == dark
    page.click("#theme")
    assert page.get_attribute("#theme", "aria-label") == "Theme: system"


def test_every_thought_stands_in_the_accessibility_tree(show: Shown) -> None:
    made = tree()
    page = show(made)
    devtools = page.context.new_cdp_session(page)
    items = [
        one
        for one in devtools.send("Accessibility.getFullAXTree")["nodes"]
        if one["role"]["value"] == "treeitem"
    ]
    names = [one["name"]["value"] for one in items]
    for one in made["nodes"]:
        assert any(one["text"] in name for name in names), one["id"]
    levels = [next(p["value"]["value"] for p in one["properties"] if p["name"] == "level") for one in items]
    assert levels == [
        1,
        *(1 + one["id"].removeprefix("node_").count(".") + 1 for one in in_preorder(made)[1:]),
    ]
    assert page.evaluate("[...document.querySelectorAll('table')].every((one) => one.caption?.textContent)")


def in_preorder(made: Any) -> list[Any]:
    def below(parent: str | None) -> list[Any]:
        return [each for one in made["nodes"] if one["parent"] == parent for each in (one, *below(one["id"]))]

    return below(None)


def test_a_newer_record_keeps_what_the_reader_chose(show: Shown) -> None:
    page = show(large(150), size=(1440, 500))
    page.dblclick("text=Fold all")
    page.click("#node-n7", position={"x": 20, "y": 20})
    page.click("#node-n5 .fold")
    page.click("#node-n7", position={"x": 20, "y": 20})
    page.evaluate("document.getElementById('tree').scrollTop = 400")
    before = drawn_ids(page)
    newer = large(150)
    newer["nodes"].append(node("fresh", "n7", "a fresh thought", "open"))
    render(page, newer)
    assert selected(page) == "n7"
    assert page.evaluate("document.getElementById('tree').scrollTop") == 400
    assert set(drawn_ids(page)) == {*before, "fresh"}
    newer["nodes"][7]["text"] = "said otherwise"
    render(page, newer)
    assert "said otherwise" in page.inner_text("#detail")
    page.click("#detail .question summary")
    assert not page.is_visible("#detail .question pre")
    page.focus("#timeline [data-id=q3]")
    render(page, newer)
    assert not page.is_visible("#detail .question pre")
    assert page.evaluate("document.activeElement.dataset.id") == "q3"


def test_collapsed_each_stage_stands_once_with_what_came_in(show: Shown) -> None:
    made = tree()
    page = show(made)
    page.click("#view-stages")
    assert not page.is_visible("#tree")
    names = page.locator("#steps .step button").all_inner_texts()
    assert len({*names}) == len(names) > 0
    asked = len(made["questions"]) + len(made["calls"])
    counters = [text.split("/") for text in page.locator("#steps .counter").all_inner_texts()]
    assert sum(int(of) for _, of in counters) == asked
    page.locator("#steps .step button").first.click()
    assert page.is_visible("#tree")
    assert page.input_value("#search").startswith("stage:")


@pytest.mark.parametrize("kind", ["tree", "failed", "analysis", "vote"])
@pytest.mark.parametrize("size", [WIDE, (1024, 768)])
def test_a_run_opens_at_its_answer_near_the_top(show: Shown, kind: str, size: tuple[int, int]) -> None:
    page = show(EVERY[kind](), size=size)
    for drawing in ("rows", "cards"):
        page.click(f"#view-{drawing}")
        top, bottom, left, right = page.evaluate(
            """() => {
                const tree = document.getElementById("tree").getBoundingClientRect();
                const at = document.querySelector("[role=treeitem][aria-selected=true]").getBoundingClientRect();
                return [at.top - tree.top, tree.bottom - at.bottom, at.left - tree.left, tree.right - at.right];
            }"""
        )
        assert min(top, bottom, left, right) >= 0, (drawing, top, bottom, left, right)
    page.click("#fit")
    assert page.evaluate(
        "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.getElementById('tree'))"
    ) in (0, 1)
    if (kind, size) == ("tree", WIDE):
        assert (
            page.evaluate("document.getElementById('tree').getBoundingClientRect().top") <= 300
        )  # warnings and all


def test_dropped_branches_beside_the_path_are_one_row_until_it_is_opened(show: Shown) -> None:
    made = tree()
    for number in range(15):
        lost = node(f"lost-{number}", "node_1" if number < 12 else "lost-0", f"a try, {number}", "dropped")
        made["nodes"].append(lost | {"why": {"code": "beam", "text": "it was not kept"}})
    page = show(made)
    row = page.locator("[data-id='dropped:node_1']")
    assert "12 beam" in row.inner_text()
    assert "3 thoughts below" in row.inner_text()
    assert not {one for one in drawn_ids(page) if one.startswith("lost")}
    assert page.locator(".fresh").count() == 0
    assert page.evaluate(OVERLAPS) == []
    page.focus("[role=treeitem][tabindex='0']")
    while page.evaluate("document.activeElement.dataset.id") != "dropped:node_1":
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert row.count() == 0
    assert {f"lost-{number}" for number in range(15)} <= {*drawn_ids(page)}
    page.keyboard.press("ArrowDown")
    assert selected(page) is not None
    page.reload()
    page.evaluate("location.hash = '#lost-13'")
    page.locator("[role=treeitem][aria-selected=true][data-id='lost-13']").wait_for()


def test_the_head_says_why_with_each_thought_as_a_link(show: Shown) -> None:
    page = show(tree())
    why = page.locator("#why")
    assert why.inner_text() == "Why" + tree()["why"]["text"]
    assert why.locator("a").all_inner_texts() == ["1", "7", "12"], "the node of 14 is gone"
    why.locator("a").nth(1).click()
    assert selected(page) == "node_1.1"
    assert show(EVERY["vote"]()).locator("#why a").all_inner_texts() == ["1", "7"]
    assert not show(tree() | {"why": None}).is_visible("#why")


def test_a_page_opens_at_what_matters(show: Shown) -> None:
    assert selected(show(EVERY["vote"]())) == "sample-1", "the winner's row"
    page = show(tree() | {"outcome": "error", "answer": None})
    failed = page.locator("#detail .question[open] summary strong", has_text="failed")
    assert failed.count() == 1, "the failed question"
    verdicts = [
        node("root", None, "A plan", "on_path", kind="problem"),
        node("t1", "root", "It takes 2 s: confirmed.", "on_path", data={"verdict": "confirmed"}),
        node("t2", "t1", "It is safe: refuted.", "on_path", data={"verdict": "refuted"}),
        node("t3", "t2", "It is cheap: confirmed.", "answer", data={"verdict": "confirmed"}),
    ]
    said = "refuted: It is safe. (No.)\nconfirmed: It takes 2 s. (Yes.)"
    page = show(document(verdicts, [], problem="A plan", answer=said))
    assert selected(page) == "t2", "the first refuted claim"
    assert page.locator("#outcome li.refuted").inner_text() == "× refuted It is safe. (No.)"
    page.locator("[data-id=root]").first.click()
    assert not page.locator("#detail .prose").count(), "the problem stands in the head"


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ("27", "p.answer.word", "27"),
        ("It takes a week, or two at most.", "p.answer:not(.word)", "It takes a week, or two at most."),
        ("```python\nprint(1)\nprint(2)\n```", "pre.answer.code", "print(1)\nprint(2)"),
        ("- one\n- two", "ul.answer.list", "one\ntwo"),
        ("1. one\n2. two", "ol.answer.list", "one\ntwo"),
        ("one\n- two", "p.answer:not(.word)", "one\n- two"),
    ],
)
def test_the_answer_stands_by_its_kind(show: Shown, answer: str, kind: str, said: str) -> None:
    page = show(tree() | {"answer": answer, "answer_is_code": kind == "pre.answer.code"})
    assert page.locator("#outcome .answer").count() == 1
    assert page.inner_text(f"#outcome {kind}") == said
    assert page.is_visible("#outcome button.copy")


def test_what_was_sent_and_what_came_back_is_open(show: Shown) -> None:
    page = show(tree(), at="#node_2")
    assert page.is_visible("#detail .turn.sent .saying")
    assert page.is_visible("#detail .turn.received .saying")
    made = tree()
    reply = '{"steps": ["halve it", "add 3"], "answer": "7"}'
    made["questions"][0] |= {"reply": reply, "prompt": [0, 1]}
    page = show(made, at=f"#{made['questions'][0]['node']}")
    said = page.locator("#detail .turn.received .saying >> nth=0")
    assert [item.strip() for item in said.locator("li").all_inner_texts()] == ["halve it", "add 3"]
    assert said.locator("strong").inner_text() == "7"
    raw = page.locator("#detail details.whole", has_text="Raw reply").first
    assert not raw.locator("pre").is_visible()
    raw.locator("summary").click()
    assert raw.locator("pre").inner_text() == reply


def test_a_branch_leaves_at_the_thought_it_came_from(show: Shown) -> None:
    page = show(EVERY["session"]())
    place = (
        "(id) => [document.getElementById(id).style].flatMap(({ left, top }) => [left, top].map(parseFloat))"
    )
    (_, above), (lane, below) = page.evaluate(place, "node-t3"), page.evaluate(place, "node-t5")
    lines = page.evaluate(
        "[...document.querySelectorAll('.edge.parent')].map((path) => path.getAttribute('d'))"
    )
    (line,) = [d for d in lines if d.endswith(f"V{below + 0.95:g}") and f" {lane + 0.75:g} " in d]
    bend = float(line.partition("V")[0].split()[-1])
    assert bend < above + 3.1, "it is in its own lane before the next row"
    assert page.inner_text("#node-t5 .branch") == "cache key"


def test_the_timeline_says_what_its_colours_mean_and_folds_when_short(show: Shown) -> None:
    page = show(tree())
    assert page.locator("#timeline .legend > span").count() > 1
    made = tree()
    made["questions"], made["calls"] = made["questions"][:2], []
    assert not show(made).is_visible("#timeline .bars")
    assert not page.locator("#timeline .legend").is_visible(), "a legend of bars that do not show"
    page.click("text=Show when each was asked")
    assert page.is_visible("#timeline .bars")


@pytest.mark.parametrize(
    ("state", "status", "best"),
    [
        ({"outcome": "stopped", "best_answer": "6"}, "Stopped", "Best so far, not an answer: 6"),
        ({"outcome": None, "status": "active"}, "Running", "Best so far: "),
    ],
)
def test_a_run_without_an_answer_says_what_it_has(show: Shown, state: Any, status: str, best: str) -> None:
    page = show(tree() | {"answer": None} | state)
    assert page.inner_text("#outcome .status") == status
    assert best in page.inner_text("#outcome")
    assert "on the best path so far" in page.inner_text("#legend")


def test_another_run_begins_anew(show: Shown) -> None:
    page = show(tree(), at="#node_2")
    page.evaluate("history.replaceState(null, '', '#')")
    page.click("#node-node_1 .fold")
    render(page, tree() | {"id": "another"})
    assert selected(page) == "node_1.1.1"
    assert len(drawn_ids(page)) == 13


OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll("[role=treeitem]")]
    .map((at) => [at.offsetLeft, at.offsetTop, at.offsetWidth, at.offsetHeight, at.dataset.id]);
  return boxes.flatMap(([x, y, w, h, id], index) => boxes.slice(index + 1)
    .filter(([a, b, c, d]) => x < a + c - 1 && a < x + w - 1 && y < b + d - 1 && b < y + h - 1)
    .map((other) => [id, other[4]]));
}"""


def test_no_two_thoughts_are_drawn_over_one_another(show: Shown) -> None:
    page = show(tree())
    for seed in range(6):
        chance = random.Random(seed)
        nodes = [node("n0", None, "root")]
        for index in range(1, 40):
            others = [f"n{chance.randrange(index)}"] if seed % 3 == 2 and chance.random() < 0.3 else []
            nodes.append(
                node(f"n{index}", f"n{chance.randrange(max(0, index - 9), index)}", "text", merges=others)
            )
        render(page, document(nodes, []))
        assert len(drawn_ids(page)) == 40
        assert page.evaluate(OVERLAPS) == [], seed
        for drawing in ("rows", "cards"):
            page.click(f"#view-{drawing}")
            assert page.evaluate(OVERLAPS) == [], (seed, drawing)


def test_a_phone_shows_an_outline_and_the_detail_as_a_sheet(show: Shown) -> None:
    page = show(tree(), size=PHONE)
    assert page.get_attribute("#tree", "data-form") == "rows"
    at = page.locator("[role=treeitem][data-state=answer]").bounding_box()
    assert at is not None
    assert at["x"] >= 0
    assert at["x"] + at["width"] <= PHONE[0]
    assert at["y"] + at["height"] <= PHONE[1], "the tree opens at its answer"
    assert not page.is_visible("#detail")
    page.click("#node-node_3")
    assert page.is_visible("#detail")
    page.click("#detail .close")
    page.locator("#detail").wait_for(state="hidden")


def test_votes_are_counted_and_the_early_stop_is_said(show: Shown) -> None:
    made = EVERY["vote"]()
    made["votes"].append({"answer": "written from all", "count": 0, "nodes": [], "leads": False})
    page = show(made)
    assert "stopped early: 2 samples were not needed" in page.inner_text("#votes")
    assert page.evaluate(
        "[...document.querySelectorAll('.vote')].map((row) => row.querySelectorAll('.voter').length)"
    ) == [4, 1, 1]
    page.click(".voter[data-node=sample-3]")
    assert selected(page) == "sample-3"


def test_a_host_of_mcp_apps_hands_the_record_over(show: Shown) -> None:
    outer = show.page.context.browser.new_page()
    outer.set_content("<iframe sandbox='allow-scripts' style='width: 900px; height: 600px'></iframe>")
    outer.evaluate(
        """(page) => {
            window.heard = [];
            window.hand = (result) => send({ method: "ui/notifications/tool-result", params: result });
            const frame = document.querySelector("iframe");
            const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
            addEventListener("message", ({ data }) => {
                heard.push(data.method);
                if (data.method === "ui/initialize") send({ id: data.id, result: { hostContext: { theme: "dark" } } });
            });
            frame.srcdoc = page;
        }""",
        html_page(None),
    )
    outer.wait_for_function("heard.includes('ui/notifications/initialized')")
    outer.wait_for_function("heard.includes('ui/notifications/size-changed')")
    frame = outer.frames[1]
    outer.evaluate("hand({ isError: true, content: [{ type: 'text', text: 'there is no run <b>' }] })")
    frame.wait_for_function("document.getElementById('problem').textContent === 'there is no run <b>'")
    outer.evaluate("(page) => hand({ structuredContent: { nodes: { total: 13 }, page } })", tree())
    frame.wait_for_selector("[role=treeitem]")
    assert frame.inner_text("#problem") == "Use 4, 9, 10 and 13 to make 24"
    assert frame.get_attribute("html", "data-theme") == "dark"
    assert outer.evaluate("heard[0]") == "ui/initialize"
    outer.close()


def test_a_question_says_on_demand_what_it_changed(show: Shown) -> None:
    page = show(tree())
    page.click("#node-problem")
    changed = page.locator("#detail details.changed")
    assert changed.locator("summary").inner_text() == "Changes: 4 thoughts"
    assert not changed.locator("li >> nth=0").is_visible()
    changed.locator("summary").click()
    assert "10 - 4 = 6" in changed.inner_text()
    changed.locator("li button >> nth=0").click()
    assert selected(page) == "node_1"


def test_on_paper_everything_is_unrolled(show: Shown) -> None:
    page = show(tree(), theme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.getElementById('tree')).overflow") == "visible"
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(252, 251, 248)"
    assert not page.is_visible("#theme")
    page.click("#view-cards")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.get_attribute("#tree", "data-form") == "rows"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.get_attribute("#tree", "data-form") == "cards"


def test_the_policy_stops_what_would_be_put_in(show: Shown) -> None:
    page = show(tree(), noisy=True)
    broken = page.evaluate(
        """async () => {
            document.body.insertAdjacentHTML("beforeend", "<img src='data:image/png,x' onerror='window.broken = 1'>");
            const script = document.createElement("script");
            script.textContent = "window.broken = 2";
            document.body.append(script);
            let evaluated = "stopped";
            try { evaluated = (0, eval)("'ran'"); } catch { }
            const fetched = await fetch("http://127.0.0.1:9/").then(() => "left", () => "stopped");
            await new Promise((done) => setTimeout(done, 50));
            return [window.broken ?? null, fetched];
        }"""
    )
    assert broken == [None, "stopped"]


def test_a_new_thought_is_marked_and_the_others_are_not_made_anew(show: Shown) -> None:
    made = tree()
    page = show(made)
    page.evaluate("window.before = [...document.querySelectorAll('[role=treeitem], .span')]")
    newer = {**made, "nodes": [*made["nodes"], node("new", made["nodes"][-1]["id"], "A new thought", "open")]}
    render(page, newer)
    fresh = "[...document.querySelectorAll('.fresh')].map((item) => item.dataset.id)"
    assert page.evaluate(fresh) == ["new"]
    # That of its parent has a sign to fold it now.
    assert page.evaluate("window.before.filter((item) => !item.isConnected).length") <= 1
    render(page, newer)
    assert page.evaluate(fresh) == []


def test_a_bracket_stays_with_the_number_before_it(show: Shown) -> None:
    why = {
        "text": "It returns False for 1600 (A is draft 3) (thought 7)",
        "thoughts": [7],
        "nodes": ["node_1.1"],
    }
    apart = show(tree() | {"why": why}, size=PHONE).evaluate(
        """() => {
          const why = document.getElementById("why");
          const bracket = document.createRange();
          bracket.selectNodeContents([...why.childNodes].findLast((node) => node.textContent));
          const isApart = (width) => {
            why.style.maxWidth = `${width}px`;
            const last = [...why.querySelectorAll("a")].at(-1).getBoundingClientRect();
            return [...bracket.getClientRects()].some((box) => box.left < last.left);
          };
          return Array.from({ length: 260 }, (_, step) => 130 + step).filter(isApart);
        }"""
    )
    assert apart == []


def test_bars_of_one_lane_do_not_overlap_and_a_long_wait_is_drawn_short(show: Shown) -> None:
    chance = random.Random(3)
    asked = [
        question(f"q{index}", "a", begun, begun + chance.randrange(50, 2000))
        for index, begun in enumerate(sorted(chance.randrange(20_000) for _ in range(60)))
    ]
    asked.append(question("next day", "a", 90_000_000, 90_001_000))
    page = show(document([node("a", None, "text")], asked))
    assert page.locator(".span").count() == 1, "many side by side are drawn by rounds"
    page.click("#timeline .head button")
    bars = page.evaluate(
        """[...document.querySelectorAll(".span")]
            .map((bar) => [bar.offsetTop, bar.offsetLeft, bar.offsetLeft + bar.offsetWidth])"""
    )
    assert len(bars) == 61
    for lane, begun, ended in bars:
        assert sum(top == lane and left < ended - 1 and begun < right - 1 for top, left, right in bars) == 1
    assert bars[-1][1] - max(right for *_, right in bars[:-1]) < 200
    assert page.inner_text(".cut").startswith("24 h")


def test_text_twice_as_large_still_fits(show: Shown) -> None:
    page = show(tree(), size=(1280, 900))
    page.evaluate(
        "document.documentElement.style.fontSize = '200%'; window.dispatchEvent(new Event('resize'))"
    )
    page.locator("#tree[data-form=rows]:not([data-dense])").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OVERLAPS) == []


def test_of_many_questions_side_by_side_each_round_is_a_bar(show: Shown) -> None:
    made = tree()
    made["questions"] = [
        question(
            f"m{number}",
            "problem",
            0 if number < 10 else 2_000,
            1_000 if number < 10 else 3_000,
            round=1 + number // 10,
        )
        for number in range(20)
    ]
    page = show(made)
    assert page.locator("#timeline .span").count() == 2
    assert page.inner_text("#timeline .span >> nth=0") == "×10"
    page.click("text=A bar for each question")
    assert page.locator("#timeline .span").count() == 20
    assert page.evaluate("document.activeElement.textContent") == "A bar for each round"
