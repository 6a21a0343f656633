"""The public API is this list; importing it is light."""

import subprocess
import sys

import pytest

import reasonry

PUBLIC = [
    *("Budget", "Coaching", "Conclusion", "Field", "Policy", "RateLimits", "ReasonryError", "Result"),
    *("STRATEGIES", "Stage", "Strategy", "Termination", "Thought", "Usage", "UsageError", "WorldError"),
    *("ask", "ask_all", "clear_all_sessions", "clear_session", "coach", "ext", "get_session"),
    *("list_sessions", "loop_limit", "machine", "select", "solve", "solve_sync", "stages", "strategy"),
    *("stream", "thinking_tool", "tree_machine"),
]

HEAVY = [
    *("openai", "anthropic", "google", "pydantic_ai", "mcp", "procrastinate", "starlette", "aiohttp"),
    *("httpx2", "rich.live", "langchain_core"),
]


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.splitlines())


def test_the_public_names_are_the_list() -> None:
    assert sorted(reasonry.__all__) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_can_be_imported_and_is_documented(name: str) -> None:
    thing = getattr(reasonry, name)
    assert name in ("STRATEGIES",) or thing.__doc__


def test_modules_of_their_own_are_imported_when_they_are_used() -> None:
    names = ["reasonry.machine.begin", "reasonry.stages.StageManager", "reasonry.tree_machine.new"]
    modules = {name.rpartition(".")[0] for name in names}
    assert not modules & loaded_after("import reasonry")
    loaded = loaded_after("\n".join(["import reasonry", *names]))
    assert modules <= loaded
    assert not [each for each in HEAVY if each in loaded]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = reasonry.no_such_name


@pytest.mark.parametrize(
    "code",
    [
        "import reasonry",
        "import reasonry; reasonry.thinking_tool; import reasonry.surfaces.python.adapters",
        "import reasonry.surfaces.cli as c\ntry: c.main(['--help'])\nexcept SystemExit: pass",
    ],
)
def test_importing_and_asking_for_help_is_light(code: str) -> None:
    loaded = loaded_after(code)
    assert not [name for name in HEAVY if name in loaded]
