"""Analysis: a query is sized up, planned, carried out, judged, brought together and put into one value.

Seed 002, "Pipeline Stage Overview".

Algorithm, for a query q, with the analysis history H:

    level, dimensions, order ← Complexity(q, H, what went wrong)       complexity_analysis
    P_1 … P_k ← Plan(q, H), side by side                               plan_generation
    P ← argmax_i score(P_i), the first of equals                       plan_evaluation
    for each task t of P, in order:
        x ← t as the input of its resource                             query_conversion, not for `py_executor`
        r ← resource(x), again with the error up to the limit          task_execution
        H ← H + r if r is ACCEPTED; else nothing of r is kept          quality_evaluation
    go on from the first line, or not                                  iteration_decision
    findings, answer ← Synthesis(q, H)                                 synthesis
    one allowed value ← Focus(answer)                                  focused_answer

*Differs from the seed*, or settles what it leaves open. Continuing goes back to the first stage, not to planning. A
focused answer may also be a `choice: A | B | …`, as the seed's own example needs. Tasks run one after another, as it
asks; `concurrent_tasks` runs those side by side that wait for no other. Without a usable plan the run fails, or is
closed with what earlier iterations brought; with nothing accepted it fails; a task whose resource fails is left after
its retries. At the cost limit, what was accepted is brought together with what was kept back for that. Every way to
the end leads through the decision, which is not asked when it is settled already. A verifier looks at the answer, which
is the focused value where one is wanted; one that it proves wrong is asked for again, with the reason.
"""

from __future__ import annotations

from .table import ANALYSIS

__all__ = ["ANALYSIS"]
