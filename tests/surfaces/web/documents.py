"""Page documents of every kind, made without a run: what the drawing has to cope with."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from reasonry.models.scripted import ScriptedModel
from reasonry.strategies import STRATEGIES
from reasonry.surfaces.web.page import PageCost, PageDocument, PageNode, PageNote, PageQuestion
from reasonry.surfaces.web.run_page import table_of

from ..test_run_report import PROBLEM, SCRIPT
from .making import a_session, elsewhere, solved

Document = dict[str, Any]

STEP = "branch_evaluation"
"""The stage in which the thoughts of the tree are valued."""


def cost(calls: int, tokens: int = 0, usd: float | None = None) -> Document:
    return msgspec.to_builtins(PageCost(calls, tokens, usd))


def node(id: str, parent: str | None, text: str, state: str = "expanded", **more: Any) -> Document:
    made = PageNode(id=id, parent=parent, kind="thought", label=id, text=text, score=more.get("score"))
    shown = "" if made.score is None else f"{made.score:.2f}"
    return msgspec.to_builtins(made) | {"state": state, "score_text": shown} | more


def question(id: str, node: str, asked: int | None, answered: int | None, **more: Any) -> Document:
    made = PageQuestion(
        id=id,
        node=node,
        stage="evaluation",
        begun_at_ms=asked,
        ended_at_ms=answered,
        error=None,
        round=1,
        sample=0,
        prompt=[0, 1],
        reply="0.8",
        status="answered",
        model="openai:gpt-5-mini",
        cost=PageCost(1, 240, 0.0004),
        read="json",
        tried=[],
    )
    return msgspec.to_builtins(made) | more


def document(nodes: list[Document], questions: list[Document], **more: Any) -> Document:
    made = PageDocument(
        kind="run",
        id="019a9f7e-2b1c-7d33-9a60-5f1e3c0b7a11",
        title="A problem",
        problem="A problem",
        strategy="tree_of_thoughts",
        strategy_title="Tree of Thoughts",
        mode="driven",
        model="openai:gpt-5-mini",
        status="done",
        outcome="answered",
        stage="final_response",
        termination={"reason": "threshold", "detail": "a thought reached the score of 1"},
        answer="24",
        created_at_ms=1_795_000_000_000,
        ended_at_ms=1_795_000_009_000,
        duration_ms=9000,
        texts=["You solve puzzles, one step at a time.", "Problem:\nUse 4, 9, 10 and 13 to make 24"],
    )
    return msgspec.to_builtins(made) | {"nodes": nodes, "questions": questions} | more


STEPS = """
1     | 10 - 4 = 6 (left: 6 9 13)    | on_path  | 0.9  |
2     | 13 - 9 = 3 (left: 3 4 10)    | dropped  | 0.0  | arithmetic: 13 - 9 is 4, not 3
3     | 4 + 9 = 13 (left: 10 13 13)  | dropped  | 0.3  | beam: its score 0.30 is below the best 2 of its round
4     | 13 - 10 = 3 (left: 3 4 9)    | expanded | 0.6  |
1.1   | 13 - 9 = 4 (left: 4 6)       | on_path  | 0.95 |
1.2   | 6 + 9 = 15 (left: 13 15)     | dropped  | 0.1  | score: its score 0.10 says it cannot lead to 24
1.3   | 13 - 6 = 7 (left: 7 9)       | dropped  | 0.2  | verifier: no arithmetic over 7 and 9 makes 24
4.1   | 9 - 3 = 6 (left: 4 6)        | open     | 0.8  |
4.2   | 3 * 4 = 12 (left: 9 12)      | dropped  | 0.4  | duplicate: the same numbers are left in 1.2
4.3   | 9 * 3 = 27 (left: 4 27)      | dropped  |      | limit: the limit of 14 nodes came first
1.1.1 | 4 * 6 = 24                   | answer   | 1.0  |
1.1.2 | 6 - 4 = 2                    | dropped  | 0.0  | not_selected: another thought of its round reached 24
"""
"""The thoughts of the tree: the label, the text, the state, the score, and why it was dropped."""


def tree() -> Document:
    """A search over three rounds: an answer, what led to it, and one dropped thought for each reason."""
    root, problem, strategy = "problem", "Use 4, 9, 10 and 13 to make 24", STRATEGIES["tree_of_thoughts"]
    stages = [*strategy.by_name]
    nodes = [node(root, None, problem, "on_path", kind="problem", label="Problem")]
    for line in STEPS.strip().splitlines():
        label, text, state, score, why = (cell.strip() for cell in line.split("|"))
        above = label.rpartition(".")[0]
        code, _, reason = why.partition(": ")
        more: Document = {"score": float(score) if score else None, "cost": cost(1, 240, 0.0004)}
        more |= {"label": label, "stage": STEP, "branch": label, "round": label.count(".") + 1}
        more |= {
            "why": {"code": code, "text": reason} if why else None,
            "begun_at_ms": 0,
            "ended_at_ms": 1500,
        }
        more |= {"origin": f"q{above}" if above else "e1"}
        nodes.append(node(f"node_{label}", f"node_{above}" if above else root, text, state, **more))
    first = {"stage": "approach_exploration", "reply": '{"thoughts": ["10 - 4 = 6", …]}'}
    questions = [question("e1", root, 0, 1450, **first)]
    at = 1500
    for labels in ("1 2 3 4", "1.1 1.2 1.3 4.1 4.2", "1.1.1 1.1.2"):
        for index, label in enumerate(labels.split()):
            ended = at + 700 + 260 * index
            questions.append(question(f"q{label}", f"node_{label}", at, ended, round=len(questions)))
        at += 2500
    questions[3]["tried"] = ["I would say it is quite likely."]
    error = {"code": "rate_limited", "text": "429: try again in 2 s"}
    questions[6] |= {"status": "failed", "outcome": "error", "reply": None, "error": error}
    questions[-1] |= {"status": "cancelled", "reply": None}
    return document(
        nodes,
        questions,
        title=problem,
        problem=problem,
        answer="(10 - 4) * (13 - 9) = 24",
        why={
            "text": "Thought 14 ends in the answer and rests on thoughts 1, 7 and 12; no check was asked for",
            "thoughts": [1, 7, 12, 14],
            "nodes": ["node_1", "node_1.1", "node_1.1.1", "gone"],
        },
        warnings=["2 replies could not be read at first and were asked for again."],
        table=table_of(strategy),
        path=[*stages[:7], *stages[3:]],
        used={"calls": 12, "tokens": 2880, "usd": 0.0048, "seconds": 9.0, "nodes": 13},
        budget={"calls": 40, "tokens": 6000, "usd": 0.05, "seconds": 60, "nodes": 14},
        cost_of_dropped=cost(5, 1200, 0.002),
        notes=[
            msgspec.to_builtins(PageNote(id="t3", node=root, stage=STEP, text="Scores: 1: 0.90, 2: refuted"))
        ],
    )


def failed() -> Document:
    """A run that ran out of its limit, with the best it had."""
    made = tree()
    for one in made["nodes"]:
        if one["state"] in {"answer", "on_path"} and one["parent"]:
            one["state"] = "open"
    detail = "the limit of 12 calls was reached before a thought was good enough"
    return made | {
        "status": "failed",
        "outcome": "stopped",
        "answer": None,
        "best_answer": "(10 - 4) * (13 - 9)",
        "termination": {"reason": "max_calls", "detail": detail, "code": "budget_exhausted"},
        "used": {"calls": 12},
        "budget": {"calls": 12},
    }


def vote() -> Document:
    """Six samples, three answers, decided before the last two of eight."""
    answers = ("42", "42", "41", "42", "6 × 7", "42")
    replies = [("*", {"reasoning": f"Six times seven: {answer}", "answer": answer}) for answer in answers]
    return played("What is six times seven?", "self_consistency", replies, samples=8, window=2)


def analysis() -> Document:
    """Three plans, and of the tasks of the best one that was accepted and one that was rejected."""
    return played(PROBLEM, "analysis", SCRIPT, focused_answer_type="choice: Python | JavaScript")


def played(problem: str, strategy: str, script: Sequence[tuple[str, Any]], **options: Any) -> Document:
    """Return the page of a run whose model replies from a script of stages and replies."""
    model = ScriptedModel.of(*({"stage": stage, "reply": reply} for stage, reply in script))
    return msgspec.to_builtins(
        elsewhere(solved("memory", problem, strategy=strategy, model=model, options=options))
    )


def session() -> Document:
    """A guided session: main line, two branches, a revision, a merge."""
    return msgspec.to_builtins(elsewhere(a_session("memory")))


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
    "session": session,
    "large": large,
    "hostile": hostile,
}
