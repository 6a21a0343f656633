"""The prompts of a run, each kept as what it adds to an earlier one.

Most questions repeat an earlier one and add a little, so the prompts of a long run written out in full would be most
of what the run takes in memory and in its record.
"""

from __future__ import annotations


class PromptLog:
    """Shortens the prompts of one run, or restores them; either way in the order they were asked.

    A prompt is compared with the one before it in the same run: inside an effect (`e4/e2` is inside `e4`) that of the
    run inside; the first prompt there with the one before it of all.
    """

    def __init__(self) -> None:
        self._latest: dict[str, str] = {}
        self._before = ""

    def shorten(self, effect_id: str, prompt: str) -> tuple[int, str]:
        """Return how many characters a prompt begins with like the earlier one, and the rest of it."""
        shared = _shared_length(self._earlier(effect_id), prompt)
        self._note(effect_id, prompt)
        return shared, prompt[shared:]

    def restore(self, effect_id: str, shared: int, rest: str) -> str:
        """Return the prompt that `shorten` made this of."""
        prompt = self._earlier(effect_id)[:shared] + rest
        self._note(effect_id, prompt)
        return prompt

    def _earlier(self, effect_id: str) -> str:
        return self._latest.get(effect_id.rpartition("/")[0], self._before)

    def _note(self, effect_id: str, prompt: str) -> None:
        self._latest[effect_id.rpartition("/")[0]] = self._before = prompt


def _shared_length(first: str, second: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
