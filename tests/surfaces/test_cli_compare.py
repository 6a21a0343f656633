"""`reasonry compare` from outside: real processes, a real store, a loopback model server."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.forked import ForkedProcess
from tests.servers import ChatRequest, ModelServer

from .test_cli import Shell
from .web.making import page_in

PUZZLES = [
    {"problem": "Use 4, 9, 10 and 13 to make 24"},
    {"problem": "Use 3, 3, 8 and 8 to make 24", "id": "hard"},
    {"problem": "Use 1, 1, 1 and 1 to make 24", "id": "none"},
]
SUMS = [{"problem": f"What is {n} plus {n}?", "answer": 2 * n} for n in range(1, 7)]


class Desk(Shell):
    """A shell with data sets."""

    def dataset(self, lines: list[Any], name: str = "data.jsonl") -> str:
        path = self.folder / name
        texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
        return str(path)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return ForkedProcess(self.command(*arguments), **pipes, env=self.environ, cwd=self.folder)

    def compare(self, *arguments: str) -> dict[str, Any]:
        done = self.run("compare", *arguments, "--json")
        assert done.stderr == ""
        document = json.loads(done.stdout)
        assert "error" not in document, document
        return document

    def runs(self) -> list[dict[str, Any]]:
        return self.json("runs", "list", "--limit", "500")["runs"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def adds(request: ChatRequest) -> Any:
    """Add like a model that is wrong about 3 and 5; as a judge, read what stands in the prompt."""
    if "Is the answer given right?" in request.prompt:
        wanted, given = re.findall(r"(?:Right answer|Answer given): (\d+)", request.prompt)
        return {"reasoning": "", "answer": "yes" if wanted == given else "no"}
    number = int(re.findall(r"What is (\d+) plus", request.prompt)[0])
    answer = str(2 * number + (number in (3, 5)))
    return dict.fromkeys((request.form or {}).get("properties", {"answer": 0}), answer) | {"reasoning": "so"}


ADDING = ("--strategies", "self_consistency(samples=3, stop=full)")


# -- as one file


def test_a_recorded_table_is_printed_again_to_the_byte_without_a_model(desk: Desk) -> None:
    with ModelServer(reply=adds) as server:
        command = ("compare", desk.dataset(SUMS), "--strategies", "direct,self_consistency(samples=3)")
        first = desk.run(*command, "--model", server.model, "--record", "table.jsonl")
    assert first.returncode == 0
    for name in ("data.jsonl", "store.db"):
        (desk.folder / name).unlink()
    again = desk.run("compare", "--rescore", "table.jsonl", "--store", "nowhere/at/all.db")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert "12 of 12 runs done, 12 of them reused; this command made 0 calls" in again.stderr
    table = (desk.folder / "table.jsonl").read_text("utf-8").rstrip()
    desk.dataset([table.replace("What is 4 plus 4?", "What is 4 plus 5?", 1)], "table.jsonl")
    assert desk.run("compare", "--rescore", "table.jsonl").returncode == 3


def test_a_table_that_could_not_be_scored_again_is_refused_before_anything_is_asked(desk: Desk) -> None:
    with ModelServer(reply=adds) as server:
        command = ("compare", desk.dataset(SUMS), *ADDING, "--model", server.model)
        refused = desk.run(*command, "--judge", "model", "--record", "table.jsonl")
        assert refused.returncode == desk.run(*command, "--rescore", "table.jsonl").returncode == 2
        assert "the judge model cannot judge a recorded table again" in refused.stderr
        assert server.bodies == []
    assert not (desk.folder / "table.jsonl").exists()


# -- what comes of it


def test_a_cascade_shows_its_share_of_steps_up_to_a_dearer_model(desk: Desk) -> None:
    models = [desk.script({"stage": "*", "reply": {"reasoning": "", "answer": str(n)}}) for n in range(3)]
    ratings = ({"reason": "wrong", "rating": 2}, {"reason": "right", "rating": 9})
    judge = desk.script(*({"stage": "*", "reply": rating} for rating in ratings))
    strategies = f"cascade(models={json.dumps(models)}),direct"
    command = (desk.dataset(SUMS), "--strategies", strategies, "--model", models[0], "--judge-model", judge)
    cascade, direct = desk.compare(*command)["strategies"]
    assert (cascade["share_up"], direct["share_up"]) == (0.5, None)
    heads, *rows = (line.split("\t") for line in desk.run("compare", *command).stdout.splitlines())
    assert [row[heads.index("UP")] for row in rows] == ["50%", ""]


def test_strategies_stand_side_by_side_with_what_they_took(desk: Desk) -> None:
    chosen = ("--strategies=tot,chain_of_thought", "--judge=arithmetic:24", "--model=offline")
    document = desk.compare(desk.dataset(PUZZLES), *chosen)
    tree, chain = document["strategies"]
    assert (tree["strategy"], tree["runs"], tree["right"], tree["failed"]) == ("tree_of_thoughts", 3, 2, 1)
    assert (chain["right"], chain["failed"]) == (2, 1)
    assert document["complete"] is True
    assert {trial["item"] for trial in document["trials"]} == {"1", "hard", "none"}
    assert {one["run_id"] for one in desk.runs()} == {trial["run_id"] for trial in document["trials"]}


def test_people_get_progress_on_stderr_and_a_table_on_stdout(desk: Desk) -> None:
    done = desk.run("compare", desk.dataset(PUZZLES), "--strategies", "tot", "--judge", "arithmetic:24")
    assert done.returncode == 0
    assert "3/3 tree_of_thoughts" in done.stderr
    assert "model offline" in done.stderr
    heading, row = done.stdout.splitlines()
    assert heading.split("\t")[:4] == ["STRATEGY", "FRONT", "RIGHT", "ACCURACY"]
    assert row.split("\t")[:4] == ["tree_of_thoughts", "*", "2/3", "67%"]
    assert "tree_of_thoughts gave no answer to 1 of 3 problems: " in done.stderr
    assert "no answer (" not in done.stderr


def test_a_vote_in_which_no_two_agree_is_marked(desk: Desk) -> None:
    lines = [{"stage": "*", "reply": {"reasoning": "", "answer": answer}} for answer in ("5", "4", "6")]
    problem = desk.dataset([{"problem": "2 + 2?", "answer": 4}])
    done = desk.run("compare", problem, *ADDING, "--model", desk.script(*lines))
    assert "\t0/1 (1 thin)\t" in done.stdout
    assert "thin = votes in which no two agreed" in done.stderr
    again = desk.run("compare", problem, *ADDING, "--model", desk.script(*lines[:2], lines[0]))
    assert "\t0/1\t" in again.stdout
    assert "thin =" not in again.stderr


def test_auto_is_a_strategy_like_the_others_and_shares_its_runs(desk: Desk) -> None:
    document = desk.compare(desk.dataset(PUZZLES[:1]), "--strategies", "auto,tot", "--judge", "arithmetic:24")
    auto, tree = document["trials"]
    assert (auto["strategy"], auto["ran"]) == ("auto", "tree_of_thoughts")
    assert auto["run_id"] == tree["run_id"]


def test_a_data_set_brings_its_problems_its_judge_its_strategies_and_a_limit(desk: Desk) -> None:
    document = desk.compare("--dataset", "game24:2", "--seed", "3", "--model", "offline")
    assert (document["dataset"], document["judge"], document["problems"]) == ("game24", "game24", 2)
    assert [row["right"] for row in document["strategies"]] == [2, 2]
    assert document["budget"]["calls"] == 30
    assert {trial["item"] for trial in document["trials"]} == {"game24-1-3-1-0", "game24-1-3-1-1"}
    beginning = document["id"][:-4]
    assert desk.run("open", beginning, "--no-browser", "--output", "page.html").returncode == 0
    shown = page_in((desk.folder / "page.html").read_text("utf-8"))
    assert (shown["id"], shown["trials"]) == (document["id"], document["trials"])
    again = desk.compare("--dataset", "game24:3", "--seed", "3", "--model", "offline")
    assert again["runs"] == {"wanted": 6, "there": 6, "reused": 4}


def test_a_stage_may_ask_what_a_file_says(desk: Desk) -> None:
    file = desk.folder / "own.txt"
    file.write_text("Own words. {prompt}", "utf-8")
    prompt = ("--prompt", f"self_consistency.reasoning_path_execution={file}")
    with ModelServer(reply=adds) as server:
        command = (desk.dataset(SUMS[:1]), *ADDING, "--model", server.model)
        (plain,) = desk.compare(*command)["trials"]
        (own,) = desk.compare(*command, *prompt)["trials"]
        assert own["run_id"] != plain["run_id"]
        assert "Own words." in desk.run("runs", "show", own["run_id"], "--json").stdout
        done = desk.run("compare", *command, "--prompt", f"tree_of_thoughts.nix={file}")
        assert done.returncode == 2


def test_the_runs_on_facts_get_the_tool_that_looks_them_up(desk: Desk) -> None:
    acts = {"thought": "", "action": "look_up", "action_input": {"name": "Vellunba"}}
    ends = {"thought": "", "final_answer": "nobody knows", "answer": "nobody knows"}
    script = desk.script(*({"stage": "*", "reply": reply} for reply in (acts, ends)))
    document = desk.compare("--dataset", "facts:1", "--strategies", "react", "--model", script)
    (trial,) = document["trials"]
    shown = desk.run("runs", "show", trial["run_id"], "--json").stdout
    assert "look_up" in shown
    assert trial["right"] is False


def test_before_it_starts_it_says_how_many_calls_and_how_much_money(desk: Desk) -> None:
    with ModelServer(reply=adds) as server:
        command = (desk.dataset(SUMS), *ADDING, "--model", server.model, "--price", "10/100")
        said = desk.run("compare", *command).stderr
        assert re.search(r"6 runs to go: about \d+ calls and [\d,]+ tokens, about \$\d\.\d\d\n", said)
        assert "to go" not in desk.run("compare", *command).stderr
        free = desk.run("compare", *command[:-2], "--series", "two").stderr
    assert "6 runs to go" in free
    assert "at an unknown price" in free


# -- continuing where it stopped


def test_called_again_it_pays_only_for_what_is_new(desk: Desk) -> None:
    with ModelServer(reply=adds, samples="ignored") as server:
        model = ("--model", server.model)
        first = desk.compare(desk.dataset(SUMS[:4]), *ADDING, *model)
        paid = server.stats()["requests"]
        assert paid == first["spent"]["calls"] == 12
        again = desk.compare(desk.dataset(SUMS[:4]), *ADDING, *model)
        assert (server.stats()["requests"], again["runs"]["reused"]) == (paid, 4)
        assert again["strategies"] == first["strategies"]
        more = desk.compare(desk.dataset([*SUMS[4:], *SUMS[:4]]), *ADDING, *model)
        assert server.stats()["requests"] == paid + 6
        assert (more["runs"]["reused"], more["strategies"][0]["right"]) == (4, 4)
        desk.compare(desk.dataset(SUMS[:4]), *ADDING, *model, "--limit", "1", "--series", "two")
        assert server.stats()["requests"] == paid + 9
        desk.compare(desk.dataset(SUMS[:1] * 2), *ADDING, *model)
        assert server.stats()["requests"] == paid + 12


def test_killed_at_any_time_it_goes_on_and_repeats_at_most_what_was_in_flight(desk: Desk) -> None:
    with ModelServer(reply=adds, latency_ms=60, samples="ignored") as server:
        words = ("--model", server.model, "--parallel=2", "--json")
        command = ("compare", desk.dataset(SUMS), *ADDING, *words)
        for _ in range(3):
            process = desk.start(*command)
            wanted = server.stats()["requests"] + 4
            while server.stats()["requests"] < min(wanted, 18) and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        document = json.loads(desk.run(*command).stdout)
        assert document["complete"] is True
        assert document["strategies"][0]["right"] == 4
        # Two runs with three samples each were in flight at each kill.
        assert 18 <= server.stats()["requests"] <= 18 + 3 * 6
    assert len(desk.runs()) == len(SUMS)


def test_interrupted_it_shows_what_is_there_and_exits_130(desk: Desk) -> None:
    with ModelServer(reply=adds, latency_ms=100, samples="ignored") as server:
        command = ("compare", desk.dataset(SUMS), *ADDING, "--model", server.model, "--parallel", "1")
        process = desk.start(*command)
        while server.stats()["answered"] < 6 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "the same command continues from here" in err
        assert "self_consistency" in out
        assert desk.run(*command).returncode == 0
    assert {one["status"] for one in desk.runs()} == {"done"}


def test_what_failed_because_the_provider_did_is_run_once_more_when_asked_for(desk: Desk) -> None:
    with ModelServer(reply=adds, faults=[{"kind": "unauthorized"}]) as server:
        command = (desk.dataset(SUMS[:1]), "--strategies", "self_ask", "--model", server.model)
        failed = desk.compare(*command)
        assert failed["trials"][0]["status"] == "failed"
        server.reset(faults=[])
        assert desk.compare(*command)["trials"] == failed["trials"]
        assert server.stats()["requests"] == 0
        better = desk.compare(*command, "--retry-failed")
        assert server.stats()["requests"] > 0
        assert better["trials"][0]["run_id"] != failed["trials"][0]["run_id"]
        assert desk.compare(*command, "--retry-failed")["trials"] == better["trials"]
        assert desk.compare(*command)["trials"] == better["trials"]
    assert len(desk.runs()) == 2


# -- judges and reports


def test_a_model_judges_once_each_answer(desk: Desk) -> None:
    with ModelServer(reply=adds) as server:
        command = (desk.dataset(SUMS), *ADDING, "--model", server.model)
        exact = desk.compare(*command)
        asked = server.stats()["requests"]
        judged = desk.compare(*command, "--judge", "model")
        assert [one["right"] for one in judged["trials"]] == [one["right"] for one in exact["trials"]]
        assert judged["strategies"][0]["any_accuracy"] is None
        assert server.stats()["requests"] == asked + len(SUMS)
        desk.compare(*command, "--judge", "model")
        assert server.stats()["requests"] == asked + len(SUMS)


def test_a_verdict_that_failed_is_shown_as_such_and_asked_for_again_when_wanted(desk: Desk) -> None:
    down = [{"kind": "unauthorized"}]
    with ModelServer(reply=adds) as server, ModelServer(reply=adds, faults=down) as judge:
        judged = ("--judge=model", "--judge-model", judge.model)
        command = (desk.dataset(SUMS), *ADDING, "--model", server.model, *judged)
        done = desk.run("compare", *command)
        assert done.returncode == 8
        assert "0/6 (6 ?)" in done.stdout
        assert "6 times the judge could not be asked; --retry-failed asks again" in done.stderr
        judge.reset(faults=[])
        assert desk.compare(*command)["strategies"][0]["unjudged"] == 6
        assert judge.stats()["requests"] == 0
        again = desk.compare(*command, "--retry-failed")
        assert (again["strategies"][0]["right"], again["strategies"][0]["unjudged"]) == (4, 0)
        assert (again["spent"]["calls"], judge.stats()["requests"]) == (6, 6)
        assert desk.compare(*command, "--retry-failed")["trials"] == again["trials"]
        assert desk.run("compare", *command).returncode == 0


def test_a_judge_that_says_neither_yes_nor_no_is_not_asked_again(desk: Desk) -> None:
    def doubts(request: ChatRequest) -> Any:
        is_judge = "Is the answer given right" in request.prompt
        return {"reasoning": "", "answer": "maybe"} if is_judge else adds(request)

    with ModelServer(reply=doubts) as server:
        command = (desk.dataset(SUMS[:2]), *ADDING, "--model", server.model, "--judge", "model")
        done = desk.run("compare", *command)
        assert done.returncode == 0
        assert "2 times the judge said neither yes nor no" in done.stderr
        asked = server.stats()["requests"]
        assert desk.compare(*command, "--retry-failed")["strategies"][0]["unjudged"] == 2
        assert server.stats()["requests"] == asked


def test_where_the_money_does_not_reach_for_the_verdict_the_run_is_not_counted_as_there(desk: Desk) -> None:
    lines = [{"stage": "*", "reply": {"reasoning": "", "answer": "yes"}, "usage": {"usd": 0.01}}] * 3
    command = (desk.dataset(SUMS[:1]), *ADDING, "--model", desk.script(*lines), "--judge", "model")
    done = desk.run("compare", *command, "--total-usd", "0.02")
    assert done.returncode == 7
    assert "0 of 1 runs done" in done.stderr
    assert desk.compare(*command)["complete"] is True


# -- bad input


BAD = [
    (["data.jsonl", "--strategies", ""], "names with commas"),
    (["data.jsonl", "--strategies", "tot,nix"], "no strategy 'nix'"),
    (["data.jsonl", "--strategies", "tot,tree-of-thoughts"], "tree_of_thoughts twice"),
    (["data.jsonl", "--strategies", "tot", "--judge", "fair"], "no judge 'fair'"),
    (["data.jsonl", "--strategies", "tot"], "problem 1 has no answer"),
    (["data.jsonl", "--strategies", "tot(beam_width", "--judge", "model"], "is not a strategy"),
    (["data.jsonl", "--strategies", "tot(x=2)", "--judge", "arithmetic:24"], "no option"),
    (["data.jsonl", "--strategies", "tot", "--limit", "0"], "must be at least 1"),
    (["data.jsonl", "--strategies", "tot", "--total-usd", "nan"], "above 0"),
    (["data.jsonl", "--strategies", "tot", "--judge", "model", "--record", "no/x"], "cannot be written"),
    (["missing.jsonl", "--strategies", "tot"], "cannot be read"),
    ([".", "--strategies", "tot"], "cannot be read"),
    (["broken.jsonl", "--strategies", "tot"], "broken.jsonl, line 2: not valid JSON"),
    (["binary.jsonl", "--strategies", "tot"], "not UTF-8"),
    (["blank.jsonl", "--strategies", "tot", "--judge", "model"], "problem 1: the problem is empty"),
    (["data.jsonl"], "strategies"),
    ([], "a file of problems or --dataset"),
    (["data.jsonl", "--dataset", "game24"], "either a file"),
    (["--dataset", "game42"], "Did you mean game24?"),
    (["--dataset", "game24:0"], "NAME:SIZE"),
    (["--dataset", "game24:-1"], "NAME:SIZE"),
    (["--dataset", "game24:many"], "NAME:SIZE"),
    (["--dataset", "game24:1000000000"], "from 1 to 10,000"),
    (["--dataset", ""], "no data set ''"),
    (["--dataset", "gym/nix"], "no data set 'gym/nix'"),
    (["--dataset", "gym/maze", "--level", "2"], "no levels"),
    (["--dataset", "game24", "--level", "4"], "level"),
]


def test_bad_input_is_a_clear_error_and_nothing_is_run(desk: Desk) -> None:
    desk.dataset([PUZZLES[0]])
    desk.dataset([PUZZLES[0], '{"problem": '], "broken.jsonl")
    desk.dataset([{"problem": " "}], "blank.jsonl")
    (desk.folder / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    for arguments, message in BAD:
        done = desk.run("compare", *arguments, "--model", "offline", "--json")
        assert (done.returncode, done.stderr) == (2, ""), arguments
        assert message in json.loads(done.stdout)["error"]["message"]
    assert desk.runs() == []
