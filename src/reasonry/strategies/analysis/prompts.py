"""What is asked, in the pipeline's order.

Every prompt begins with the query, the context and the analysis history, which only grows; what is to be done stands
last. So each prompt repeats the beginning of the one before, and providers can cache it.
"""

from __future__ import annotations

from ...core.toolcard import ToolCard

SYSTEM = """You work inside an analysis pipeline. A query is sized up; plans are drafted and scored; the tasks of the \
best plan are carried out; each result passes a quality gate; what was accepted is brought together in an answer. \
You are shown the query, then what has been accepted so far, and at the end what to do now. Do that and nothing \
else. Build on what was accepted; never invent results, sources or figures. Reply with one JSON object of the form \
given at the end, and nothing else.

Resources that tasks can use:
{cards}"""

QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
KNOWLEDGE = ToolCard(
    "knowledge",
    "Says what is known about something: from the context, the user's documents, and general knowledge.",
    QUERY,
)
LOGIC_KERNEL = ToolCard(
    "logic_kernel", "Deduces step by step from what was accepted so far: compares, infers, decides.", QUERY
)
PY_EXECUTOR = ToolCard(
    "py_executor",
    "Writes and runs a Python program: for anything to be computed. Say what to compute and from which figures.",
    QUERY,
)

COMPLEXITY = """Now size up the query, without answering it. The levels, and how many tasks a plan then has:
straightforward (2-3): a direct question with a clear answer
moderate (3-4): several steps, some of which need others
complex (4-5): has to be looked at from several sides
highly_complex (5-6): many factors that act on one another
{setbacks}
{{"complexity_level": "…", "dimensions": ["aspect to address", …], "key_challenges": ["what makes it difficult", …], \
"sequential_dependencies": ["what must come before what", …], "iteration_strategy": "how many passes, and for what"}}"""

PLAN = """Now draft one plan: {least} to {most} tasks, in the order to carry them out, each for one resource of the \
list. A task says by itself what its resource is to accomplish. Later tasks see the accepted results of earlier ones, \
so do not ask for the same thing twice. {depends}{lean}
{setbacks}
{{"tasks": [{{"resource_name": "…", "task_query": "…"{field}}}, …]}}"""
DEPENDS = "Tasks that need no other's result run side by side: name in depends_on the tasks whose results one needs. "
DEPENDS_FIELD = ', "depends_on": [numbers of earlier tasks]'
LEAN = "You draft plan {number} of {count}, the others are drafted apart; {angle}."
ANGLES = (
    "take the most direct way",
    "weigh the sides of the matter against one another",
    "begin with what is least certain",
    "rely on what can be computed or checked, where anything can",
    "look for what speaks against the obvious answer",
)

EVALUATE = """A plan was drafted:
{plan}

Now score it from 0 to 100. Does each task use the right resource? Is the order right? Are all aspects of the query \
covered? Can it be carried out with the resources there are?
{{"overall_score": 0 to 100, "reason": "…"}}"""

CONVERT = """The next task is for `{resource}`:
{query}
{errors}
Now write it as the input of that resource: complete, with what it needs from the results above.
Its arguments: {parameters}
{{"tool_input": {example}}}"""

PERFORM = {
    "knowledge": """The next task is for `knowledge`:
{input}
{passages}{errors}
Now say what is known about it, from the context and the passages where they have it, else from general knowledge. \
Cite passages as [n]. Say how sure you are.
{{"answer": "…", "confidence": 0 to 1}}""",
    "logic_kernel": """The next task is for `logic_kernel`:
{input}
{errors}
Now deduce it, step by step, from what was accepted above; each step is one inference.{formal}
{{"steps": ["…", …], "conclusion": "…"{field}}}""",
    "py_executor": """The next task is for `py_executor`:
{input}
{errors}
Now write the Python program that does it. It runs in a sandbox ({sandbox}), without files and network. Its last \
line is an expression: the result.
{{"code": "…"}}""",
}
FORMAL = " If the conclusion can be stated formally, do so in formal_claim too; it is then checked. Its form: {how}"
FORMAL_FIELD = ', "formal_claim": optional'
PASSAGES = "\nPassages:\n{passages}\n"
SANDBOX = "plain Python"

ERRORS = """
It was tried before and failed:
{errors}
Do it another way."""
CODE_ERRORS = """
The last program was:
{code}
What went wrong so far:
{errors}
Correct it."""

QUALITY = """A task was carried out by `{resource}`:
{query}

Its result:
{result}

Now decide whether later work may build on this result. Accept it if it does what the task asks, is sound, agrees \
with what was accepted before and is honest about what is uncertain. Reject it if it is wrong, refuted, off the \
point, empty or made up.
{{"quality": "ACCEPTED or REJECTED", "reason": "…"}}"""

DECIDE = """Iteration {number} of at most {most} is over{wanted}.
{setbacks}
Now decide whether another iteration is worth it: are aspects of the query still open, did results raise new \
questions, is there an error to correct?
{{"continue_iterations": true or false, "quality_summary": "how good the work is so far", "decision_rationale": \
"why", "recommendations_for_next_iteration": "what to focus on, if going on"}}"""

SETBACKS = "What did not work so far:\n{lines}"

SYNTHESIZE = """Now bring all accepted results together and answer the query. Give the whole answer with its \
reasoning, the key findings, and the final answer for the user: polished, direct, complete in itself.{none}
{{"answer": "the whole answer with its reasoning", "key_findings": ["…", …], "final_answer": "…", "title": "…", \
"headline": "the upshot in one line"{field}}}"""
NOTHING_ACCEPTED = " Nothing was accepted, so say plainly how far the answer can be relied upon."
CAPTION_FIELD = ', "image_caption": "caption of an image that shows the upshot"'

FOCUS = """The analysis came to this answer:
{answer}

Now put it into one value that a program can branch on: {rule}. Nothing else will be accepted.
{{"value": …}}"""
