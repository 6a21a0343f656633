"""The examples in the help of the commands: each prints what it says, and every command has one."""

from pathlib import Path

from reasonry.surfaces.cli.commands import read_examples

from ..docs.test_docs import generator
from .transcript import commands_of, comparable, pattern, perform, prepared


def test_every_example_prints_what_it_says(tmp_path: Path) -> None:
    different: list[str] = []
    with prepared(tmp_path) as clock:
        for name, example in read_examples().items():
            for command, expected in commands_of(example):
                output = comparable(perform(command))
                next(clock)
                if not pattern(comparable(expected)).fullmatch(output):
                    different.append(f"{name}: $ {command}\n{output}\n--- is not\n{expected}")
    assert not different, (
        "\n\n".join(different) + "\n\npython -m tests.surfaces.transcript prints them all again"
    )


def test_every_command_has_an_example_that_runs_it() -> None:
    commands = [" ".join(tokens) for tokens in generator().reference.commands()]
    groups = {name.partition(" ")[0] for name in commands if " " in name}
    examples = read_examples()
    assert set(commands) - groups - examples.keys() == set()
    assert examples.keys() <= set(commands)
    for name, example in examples.items():
        assert any(f"reasonry {name}" in command for command, _ in commands_of(example))
        assert all(len(line) <= 80 for line in example.split("\n")), name
