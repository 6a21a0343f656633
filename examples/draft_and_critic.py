"""A strategy of your own: draft, name the worst fault, mend it, until there is none.

python examples/draft_and_critic.py
"""

from __future__ import annotations

import reasonry
from reasonry import ask
from reasonry.ext import Loop, ScriptedModel


@reasonry.strategy
def draft_and_critic(problem: str) -> Loop:
    """Draft and mend."""
    draft = yield ask(f"Write this: {problem}")
    for _ in range(3):
        fault = yield ask(f"Name the worst fault, or reply OK.\n\n{draft}", name="critic")
        if fault == "OK":
            break
        draft = yield ask(f"Mend this fault: {fault}\n\n{draft}", name="mend")
    return draft


replies = "A song", "It has no rain.", "A song of rain", "OK"
model = ScriptedModel.of(*({"stage": "loop", "reply": reply} for reply in replies))
print(reasonry.solve_sync("a song", strategy=draft_and_critic, model=model, store="memory").answer)
