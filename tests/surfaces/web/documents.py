"""Page documents of every kind, made without a run: what the drawing has to cope with."""

from __future__ import annotations

import random
from typing import Any

Document = dict[str, Any]

NO_COST = {"calls": 0, "tokens": 0, "usd": None}


def cost(calls: int, tokens: int = 0, usd: float | None = None) -> Document:
    return {"calls": calls, "tokens": tokens, "usd": usd}


def node(id: str, parent: str | None, text: str, state: str = "expanded", **more: Any) -> Document:
    score = more.get("score")
    return {
        "id": id,
        "parent": parent,
        "kind": "thought",
        "label": id,
        "text": text,
        "stage": "",
        "branch": "",
        "round": None,
        "score": None,
        "score_text": "" if score is None else f"{score:.2f}",
        "state": state,
        "why": None,
        "begun_at_ms": None,
        "ended_at_ms": None,
        "revises": None,
        "merges": [],
        "data": {},
        "origin": "",
        "cost": NO_COST,
        **more,
    }


def question(id: str, node: str, asked: int | None, answered: int | None, **more: Any) -> Document:
    return {
        "id": id,
        "node": node,
        "stage": "evaluation",
        "round": 1,
        "sample": 0,
        "begun_at_ms": asked,
        "ended_at_ms": answered,
        "prompt": [0, 1],
        "reply": "0.8",
        "status": "answered",
        "error": None,
        "model": "openai:gpt-5-mini",
        "cost": cost(1, 240, 0.0004),
        "read": "json",
        "tried": [],
        **more,
    }


def document(nodes: list[Document], questions: list[Document], **more: Any) -> Document:
    return {
        "format": 1,
        "kind": "run",
        "id": "019a9f7e-2b1c-7d33-9a60-5f1e3c0b7a11",
        "session_id": "019a9f7e-2b1c-7d33-9a60-5f1e3c0b7a12",
        "title": "A problem",
        "problem": "A problem",
        "strategy": "tree_of_thoughts",
        "strategy_title": "Tree of Thoughts",
        "mode": "driven",
        "model": "openai:gpt-5-mini",
        "status": "done",
        "outcome": "answered",
        "stage": "final_response",
        "termination": {"reason": "threshold", "detail": "a thought reached the score of 1"},
        "answer": "24",
        "best_answer": None,
        "warnings": [],
        "created_at_ms": 1_795_000_000_000,
        "ended_at_ms": 1_795_000_009_000,
        "duration_ms": 9000,
        "table": [],
        "path": [],
        "used": {},
        "budget": {},
        "votes": [],
        "nodes": nodes,
        "questions": questions,
        "calls": [],
        "texts": ["You solve puzzles, one step at a time.", "Problem:\nUse 4, 9, 10 and 13 to make 24"],
        "notes": [],
        "outline": [],
        "cuts": {"texts": 0, "characters": 0, "nodes": 0, "questions": 0, "notes": 0},
        **more,
    }


TREE_TABLE = [
    {"name": name, "description": description, "next": list(after)}
    for name, description, *after in [
        ("problem_reception", "Take in the problem.", "approach_exploration"),
        ("approach_exploration", "Find several different first steps.", "branch_creation"),
        ("branch_creation", "Make a branch of each.", "branch_evaluation"),
        ("branch_evaluation", "Value every branch.", "branch_selection"),
        (
            "branch_selection",
            "Choose which to follow.",
            *("branch_expansion", "backtracking", "solution_synthesis"),
        ),
        ("branch_expansion", "Take the chosen ones further.", "branch_evaluation"),
        ("backtracking", "Leave a branch that leads nowhere.", "branch_selection"),
        ("solution_synthesis", "Put the path together.", "final_response"),
        ("final_response", "Answer."),
    ]
]


def tree() -> Document:
    """A search over three rounds: an answer, what led to it, and one dropped thought for each reason."""
    root = "problem"
    nodes = [node(root, None, "Use 4, 9, 10 and 13 to make 24", "on_path", kind="problem", label="Problem")]
    steps = [
        ("1", root, "10 - 4 = 6 (left: 6 9 13)", "on_path", 0.9, None),
        ("2", root, "13 - 9 = 3 (left: 3 4 10)", "dropped", 0.0, ("arithmetic", "13 - 9 is 4, not 3")),
        (
            "3",
            root,
            "4 + 9 = 13 (left: 10 13 13)",
            "dropped",
            0.3,
            ("beam", "its score 0.30 is below the best 2 of its round"),
        ),
        ("4", root, "13 - 10 = 3 (left: 3 4 9)", "expanded", 0.6, None),
        ("1.1", "1", "13 - 9 = 4 (left: 4 6)", "on_path", 0.95, None),
        (
            "1.2",
            "1",
            "6 + 9 = 15 (left: 13 15)",
            "dropped",
            0.1,
            ("score", "its score 0.10 says it cannot lead to 24"),
        ),
        (
            "1.3",
            "1",
            "13 - 6 = 7 (left: 7 9)",
            "dropped",
            0.2,
            ("verifier", "no arithmetic over 7 and 9 makes 24"),
        ),
        ("4.1", "4", "9 - 3 = 6 (left: 4 6)", "open", 0.8, None),
        (
            "4.2",
            "4",
            "3 * 4 = 12 (left: 9 12)",
            "dropped",
            0.4,
            ("duplicate", "the same numbers are left in 1.2"),
        ),
        (
            "4.3",
            "4",
            "9 * 3 = 27 (left: 4 27)",
            "dropped",
            None,
            ("limit", "the limit of 14 nodes came first"),
        ),
        ("1.1.1", "1.1", "4 * 6 = 24", "answer", 1.0, None),
        (
            "1.1.2",
            "1.1",
            "6 - 4 = 2",
            "dropped",
            0.0,
            ("not_selected", "another thought of its round reached 24"),
        ),
    ]
    for label, parent, text, state, score, why in steps:
        parent_id = parent if parent == root else f"node_{parent}"
        nodes.append(
            node(
                f"node_{label}",
                parent_id,
                text,
                state,
                label=label,
                score=score,
                stage="branch_evaluation",
                branch=label,
                round=label.count(".") + 1,
                why=why and {"code": why[0], "text": why[1]},
                cost=cost(1, 240, 0.0004),
                begun_at_ms=0,
                ended_at_ms=1500,
                origin="e1" if "." not in label else f"q{label.rpartition('.')[0]}",
            )
        )
    questions = [
        question("e1", root, 0, 1450, stage="approach_exploration", reply='{"thoughts": ["10 - 4 = 6", …]}')
    ]
    at = 1500
    for round_labels in (["1", "2", "3", "4"], ["1.1", "1.2", "1.3", "4.1", "4.2"], ["1.1.1", "1.1.2"]):
        for index, label in enumerate(round_labels):
            long = at + 700 + 260 * index
            questions.append(question(f"q{label}", f"node_{label}", at, long, round=len(questions)))
        at += 2500
    questions[3]["tried"] = ["I would say it is quite likely."]
    questions[6] |= {
        "status": "failed",
        "outcome": "error",
        "reply": None,
        "error": {"code": "rate_limited", "text": "429: try again in 2 s"},
    }
    questions[-1] |= {"status": "cancelled", "reply": None}
    return document(
        nodes,
        questions,
        title="Use 4, 9, 10 and 13 to make 24",
        problem="Use 4, 9, 10 and 13 to make 24",
        answer="(10 - 4) * (13 - 9) = 24",
        why={
            "text": "Thought 14 ends in the answer and rests on thoughts 1, 7 and 12; no check was asked for",
            "thoughts": [1, 7, 12, 14],
            "nodes": ["node_1", "node_1.1", "node_1.1.1", "gone"],
        },
        warnings=["2 replies could not be read at first and were asked for again."],
        table=TREE_TABLE,
        path=[
            "problem_reception",
            "approach_exploration",
            "branch_creation",
            "branch_evaluation",
            "branch_selection",
            "branch_expansion",
            "branch_evaluation",
            "branch_selection",
            "solution_synthesis",
            "final_response",
        ],
        used={"calls": 12, "tokens": 2880, "usd": 0.0048, "seconds": 9.0, "nodes": 13},
        budget={"calls": 40, "tokens": 6000, "usd": 0.05, "seconds": 60, "nodes": 14},
        cost_of_dropped=cost(5, 1200, 0.002),
        notes=[
            {
                "id": "t3",
                "node": root,
                "stage": "branch_evaluation",
                "text": "Scores: 1: 0.90, 2: refuted",
                "score": None,
            }
        ],
    )


def failed() -> Document:
    """A run that ran out of its limit, with the best it had."""
    made = tree()
    for one in made["nodes"]:
        if one["state"] in {"answer", "on_path"} and one["parent"]:
            one["state"] = "open"
    return made | {
        "status": "failed",
        "outcome": "stopped",
        "answer": None,
        "best_answer": "(10 - 4) * (13 - 9)",
        "termination": {
            "reason": "max_calls",
            "detail": "the limit of 12 calls was reached before a thought was good enough",
            "code": "budget_exhausted",
        },
        "used": {"calls": 12},
        "budget": {"calls": 12},
    }


def vote() -> Document:
    """Eight samples, three answers, decided before the last two."""
    answers = ["42", "42", "41", "42", "6 × 7", "42", None, None]
    nodes = [
        node(
            "root",
            None,
            "What do you get if you multiply six by seven?",
            "on_path",
            kind="problem",
            label="Problem",
        )
    ]
    questions = []
    for index, answer in enumerate(answers):
        agrees = answer == "42"
        why = None
        if answer is None:
            why = {"code": "stopped_early", "text": "the other answers could no longer win"}
        elif not agrees:
            why = {"code": "differs", "text": f"it answers {answer}"}
        nodes.append(
            node(
                f"s{index}",
                "root",
                f"Six times seven: {answer}" if answer else "",
                "answer" if index == 0 else "on_path" if agrees else "dropped",
                kind="sample",
                label=f"Sample {index + 1}",
                why=why,
                begun_at_ms=0,
                ended_at_ms=900 + 310 * index if answer else None,
            )
        )
        if answer:
            questions.append(
                question(f"e{index}", f"s{index}", 0, 900 + 310 * index, sample=index, reply=answer)
            )
        else:
            questions.append(
                question(f"e{index}", f"s{index}", 0, 2500, sample=index, reply=None, status="cancelled")
            )
    return document(
        nodes,
        questions,
        title="Six by seven",
        problem=nodes[0]["text"],
        strategy="self_consistency",
        strategy_title="Self-Consistency",
        answer="42",
        termination={"detail": "4 of 8 samples agree and no other answer can reach them"},
        duration_ms=2500,
        why={
            "text": "4 of 6 samples agree; second: 41 (1) (thoughts 1 and 9)",
            "thoughts": [1, 9],
            "nodes": ["s0", "root"],
        },
        votes=[
            {"answer": "42", "count": 4, "nodes": ["s0", "s1", "s3", "s5"], "leads": True},
            {"answer": "41", "count": 1, "nodes": ["s2"], "leads": False},
            {"answer": "6 × 7", "count": 1, "nodes": ["s4"], "leads": False},
        ],
        samples_used=6,
        samples_saved=2,
        confidence=1.0,
        used={"calls": 8},
        cost_of_dropped=cost(4, 0, None),
    )


def analysis() -> Document:
    """Two iterations, each with plans and tasks."""
    nodes = [
        node("root", None, "Why did sign-ups fall in March?", "on_path", kind="problem", label="Problem")
    ]
    for iteration in (1, 2):
        above = f"i{iteration}"
        nodes.append(
            node(
                above,
                "root",
                "Look again at the funnel",
                "on_path",
                kind="iteration",
                label=f"Iteration {iteration}",
            )
        )
        for letter, points in (("A", 82), ("B", 64), ("C", 51)):
            chosen = letter == "A"
            plan = f"{above}{letter}"
            why = None if chosen else {"code": "not_selected", "text": "another plan scored higher"}
            text = f"Plan {letter}: compare the funnel by channel, then by device, then by country of the visitor"
            more = {
                "kind": "plan",
                "label": f"Plan {letter}",
                "score": points,
                "score_text": f"{points}/100",
                "why": why,
            }
            nodes.append(node(plan, above, text, "on_path" if chosen else "dropped", **more))
            for task in range(1, 4) if chosen else ():
                bad = task == 2 and iteration == 1
                more = {"kind": "task", "label": f"Task {task}", "score": 0.3 if bad else 0.9}
                more["why"] = {"code": "rejected", "text": "no figure is given"} if bad else None
                text = "Share of visitors that reach the form, by channel"
                nodes.append(node(f"{plan}{task}", plan, text, "dropped" if bad else "on_path", **more))
    questions = [
        question(f"e{index}", one["id"], 1200 * index, 1200 * index + 1100)
        for index, one in enumerate(nodes[:12])
    ]
    questions += [question("late", "i2A3", 90_000_000, 90_002_000)]
    return document(
        nodes,
        questions,
        title="Why did sign-ups fall in March?",
        problem="Why did sign-ups fall in March?",
        strategy="analysis",
        strategy_title="Analysis",
        answer="Mobile visitors from the newsletter no longer reached the form.",
        outline=[
            {"kind": "heading", "text": "Findings", "level": 2},
            {"kind": "prose", "text": "The fall is on phones alone, and begins with the release of 3 March."},
            {"kind": "bullets", "items": ["Desktop is flat.", "The form is below the fold on phones."]},
        ],
    )


def rewoo() -> Document:
    """A plan whose steps use the evidence of several earlier ones."""
    root = node(
        "root",
        None,
        "How much older is the older of the two bridges?",
        "on_path",
        kind="problem",
        label="Problem",
    )
    steps = [
        ("#E1", "root", [], "Search[Forth Bridge opening]"),
        ("#E2", "root", [], "Search[Tower Bridge opening]"),
        ("#E3", "#E1", [], "LLM[year in #E1]"),
        ("#E4", "#E2", [], "LLM[year in #E2]"),
        ("#E5", "#E3", ["#E4"], "Calculator[#E4 - #E3]"),
        ("Answer", "#E5", ["#E1"], "4 years"),
    ]
    nodes = [root]
    for label, parent, merges, text in steps:
        state = "answer" if label == "Answer" else "on_path"
        nodes.append(node(label, parent, text, state, kind="step", label=label, merges=merges))
    calls = [
        {
            "id": f"c{index}",
            "node": label,
            "kind": "tool",
            "name": "search",
            "begun_at_ms": 1000 + 100 * index,
        }
        | {"ended_at_ms": 2200 + 300 * index, "text": "bridge", "result": "1890", "error": None}
        for index, label in enumerate(["#E1", "#E2"])
    ]
    questions = [
        question("e1", "root", 0, 900),
        question("e2", "#E3", 2700, 3500),
        question("e3", "#E4", 2700, 3900),
    ]
    return document(nodes, questions, calls=calls, strategy="rewoo", strategy_title="ReWOO", answer="4 years")


def session() -> Document:
    """A guided session: main line, two branches, a revision, a merge."""
    rows: list[tuple[str, str, str, dict[str, Any]]] = [
        ("t1", "root", "", {"text": "The build takes 14 minutes; where does the time go?"}),
        ("t2", "t1", "", {"text": "Most of it is in the tests, 9 minutes."}),
        ("t3", "t2", "cache", {"text": "What if the environment were cached?"}),
        ("t4", "t2", "", {"text": "Run the tests in parallel: 2 workers."}),
        ("t5", "t3", "cache", {"text": "Caching saves 2 minutes at most."}),
        ("t6", "t4", "", {"text": "With 2 workers the tests take 5 minutes.", "revises": "t2"}),
        (
            "t7",
            "t4",
            "skip",
            {"text": "Skip slow tests?", "state": "dropped", "why": {"code": "abandoned", "text": "left"}},
        ),
        ("t8", "t6", "", {"text": "Take both: workers and cache.", "merges": ["t5"]}),
        ("t9", "t8", "", {"text": "7 minutes. Good enough.", "state": "answer"}),
    ]
    nodes = [node("root", None, "Why is the build slow?", kind="problem", label="Session")]
    for number, (id, parent, branch, more) in enumerate(rows, 1):
        fields = {
            "label": f"Thought {number}",
            "number": number,
            "branch": branch,
            "stage": "analysis",
        } | more
        nodes.append(node(id, parent, fields.pop("text"), fields.pop("state", "expanded"), **fields))
    return document(
        nodes,
        [],
        kind="session",
        title="Why is the build slow?",
        problem="Why is the build slow?",
        strategy="",
        strategy_title="",
        mode="guided",
        model="",
        status="active",
        answer=None,
        termination={},
        texts=[],
    )


def large(count: int = 1000, seed: int = 7) -> Document:
    """A search of many nodes with a question each."""
    chance = random.Random(seed)
    nodes = [node("n0", None, "A large search", "on_path", kind="problem", label="Problem")]
    depth = {"n0": 0}
    for index in range(1, count):
        parent = nodes[(index - 1) // 4]["id"]
        depth[f"n{index}"] = depth[parent] + 1
        state = chance.choice(["open", "expanded", "dropped", "dropped"])
        why = {"code": "beam", "text": "not among the best 5 of its round"} if state == "dropped" else None
        text = f"Step {index}: " + " ".join(
            chance.choice(["take", "the", "larger", "half", "and", "add"]) for _ in range(12)
        )
        nodes.append(node(f"n{index}", parent, text, state, label=str(index), score=chance.random(), why=why))
    nodes[-1] |= {"state": "answer", "why": None}
    questions = [
        question(f"q{index}", one["id"], 900 * (index // 8), 900 * (index // 8) + chance.randint(300, 880))
        for index, one in enumerate(nodes)
    ]
    return document(
        nodes, questions, title="A large search", problem="A large search", duration_ms=900 * count // 8
    )


HOSTILE = (
    "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"
    "<svg onload='window.broken = 3'><style>*{display:none}</style><!-- javascript:window.broken=4 "
    "@@script@@ ${1} \u2028\u202e"
)


def hostile() -> Document:
    """The tree with markup in every text it has, at any depth; ids, kinds and states stay."""
    return spoiled(tree())


def spoiled(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: spoiled(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [spoiled(item, key) for item in value]
    kept = {"state", "kind", "status", "node", "id", "parent"}
    return f"{value}{HOSTILE}" if isinstance(value, str) and key not in kept else value


EVERY = {
    "tree": tree,
    "failed": failed,
    "vote": vote,
    "analysis": analysis,
    "rewoo": rewoo,
    "session": session,
    "large": large,
    "hostile": hostile,
}
