"""What counts something is a whole number, whichever way it is named; nothing is rounded."""

from collections.abc import Iterator
from typing import Any

import pytest
from cyclopts import App as Command
from hypothesis import given
from hypothesis import strategies as st

from reasonry import Policy, UsageError
from reasonry.guided.session_settings import SessionSettings
from reasonry.surfaces.cli.commands import app
from reasonry.surfaces.cli.parameters import _WHOLE, _read_whole  # pyright: ignore[reportPrivateUsage]

BROKEN = st.floats().filter(
    lambda value: value != value or value in (float("inf"), -float("inf")) or value % 1
)
"""Numbers that are not whole."""
TEXTS = st.one_of(BROKEN.map(str), st.text(max_size=30)).filter(
    lambda text: not _WHOLE.fullmatch(text.strip())
)


def commands(app: Command, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    for name in (name for name in app if not name.startswith("-")):
        command = app[name]
        if any(not inner.startswith("-") for inner in command):
            yield from commands(command, (*names, name))
        else:
            yield (*names, name), command


def test_every_option_of_a_command_that_takes_a_whole_number_reads_it_so() -> None:
    counted = [
        (names, argument)
        for names, command in commands(app)
        for argument in command.assemble_argument_collection()
        if argument.hint in (int, int | None)
    ]
    assert {("solve", "--max-tokens"), ("compare", "--parallel")} <= {
        (names[0], argument.name) for names, argument in counted
    }
    assert not [
        (names, argument.name)
        for names, argument in counted
        if argument.parameter.converter is not _read_whole
    ]


class Token:
    keyword = "--limit"

    def __init__(self, value: str) -> None:
        self.value = value


@given(TEXTS)
def test_a_text_that_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        _read_whole(int, [Token(text)])  # pyright: ignore[reportArgumentType]


@given(st.integers(-(10**18), 10**18), st.sampled_from(["", ".0", ".000"]))
def test_a_whole_number_is_read_exactly(number: int, tail: str) -> None:
    assert _read_whole(int, [Token(f" {number}{tail}")]) == number  # pyright: ignore[reportArgumentType]


@given(
    st.sampled_from(["max_concurrency", "max_attempts"]),
    st.one_of(BROKEN, st.text(max_size=5), st.booleans()),
)
def test_a_policy_takes_whole_counts(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        Policy(**{name: value})


@given(
    st.one_of(BROKEN.map(str), st.text(st.characters(exclude_categories=["N"]), min_size=1).filter(str.strip))
)
def test_a_setting_takes_whole_counts(text: str) -> None:
    with pytest.raises(UsageError, match="whole number"):
        SessionSettings.from_environ({"REASONRY_MAX_THOUGHTS": text})
