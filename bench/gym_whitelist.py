"""Which data sets of reasoning-gym can be judged: all names that may stand behind `gym/`.

    uv run python bench/gym_whitelist.py [NAME ...]

About 8 minutes for all, with the extra `gym`. A data set is listed where a seed makes the same problems again within
20 seconds of CPU time, its own answers get the full score, and an empty answer gets at most 0.05. Left out besides:
`acre`, which is made from GPL data, and `syllogism`, whose answers are wrong for two forms. Target: each name of
`WHITELIST` holds to this.
"""

import sys
import time
from typing import Any

from reasonry.compare.gym import WHITELIST

LEFT_OUT = ("acre", "syllogism")
SIZE, MAX_S, MAX_EMPTY = 12, 20, 0.05


def fault(gym: Any, name: str) -> str | None:
    began = time.process_time()
    for seed in (1, 2):
        data = gym.create_dataset(name, size=SIZE, seed=seed)
        entries = list(data)
        if [entry["question"] for entry in gym.create_dataset(name, size=SIZE, seed=seed)] != [
            entry["question"] for entry in entries
        ]:
            return "the same seed makes other problems"
        for entry in entries:
            if not isinstance(entry["answer"], str) or not entry["answer"]:
                return "it has no answer"
            if data.score_answer(entry["answer"], entry) != 1.0:
                return "its own answer does not get the full score"
            if data.score_answer("", entry) > MAX_EMPTY:
                return "an empty answer gets a score"
            # The judge takes the full score alone for right, so a part of it does no harm.
            if data.score_answer("I do not know.", entry) == 1.0:
                return "a text without an answer gets the full score"
    taken = time.process_time() - began
    return f"it takes {taken:.0f} s" if taken > MAX_S else None


def main() -> int:
    try:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    except ImportError:
        print("reasoning-gym is not installed: uv sync --extra gym")
        return 2
    failed = 0
    for name in sys.argv[1:] or sorted(DATASETS):
        try:
            why = "it is left out" if name in LEFT_OUT else fault(reasoning_gym, name)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        failed += why is not None and name in WHITELIST
        print(f"{name:<28} {'listed' if name in WHITELIST else '':<7} {why or 'ok'}", flush=True)
    print("target met" if not failed else f"TARGET MISSED: {failed} of the names fail")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
