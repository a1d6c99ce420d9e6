"""Figures of the paper from one command: complete, resumable, shared by processes."""

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from ncap import cli
from ncap.errors import UserError
from ncap.evaluation import evaluate
from ncap.experiments import performance, performance_figures, shipped
from ncap.experiments.library import SCALES, Library, describe_task
from ncap.experiments.reproduce import EXPERIMENTS, chosen
from ncap.learn.executors import LocalExecutor
from ncap.report.tables import merge_table, read_table, write_table
from ncap.sim.terrain import Bumpy
from ncap.tasks import PAPER_TASKS, TASKS
from ncap.trained import load, read_policy

TINY = replace(SCALES["smoke"], seeds=1, runs={}, tasks=("flat-walk",), episodes=1)
FIGURES = (
    "gaits",
    "units",
    "performance",
    "aggregate",
    *(f"footfalls-{task}" for task in PAPER_TASKS),
    "parameters",
    "generalization",
    "weights-ncap",
    "algorithms",
)


def library(folder):
    return Library(folder, LocalExecutor(1), 1, lambda _: None)


@pytest.mark.slow
def test_two_processes_share_the_smoke_scale_and_every_figure_is_there(tmp_path):
    command = [sys.executable, "-m", "ncap", "reproduce", "all", "--out", str(tmp_path), "--threads", "1"]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    for name in FIGURES:
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
        assert (tmp_path / f"{name}.svg").exists()
    curves = read_table(tmp_path / "performance.csv")
    first = {(row["task"], row["policy"]): float(row["test_return"]) for row in curves if row["steps"] == "0"}
    assert len(first) == 3 * 4 + 2 + 2  # three on all tasks, D4PG and the circuit by PPO on walks
    for task in ("flat-walk", "bumpy-walk"):  # the circuit walks before it is trained, the MLP stands
        assert first[task, "ncap"] > first[task, "mlp-evolution"] + 0.05
    power = {(row["task"], row["policy"]): row for row in read_table(tmp_path / "power.csv")}
    assert (power["flat-run", "mlp-ppo"]["seeds"], power["flat-run", "mlp-ppo"]["seeds_of_policy"]) == ("2", "1")
    assert power["flat-run", "mlp-ppo"]["seeds_needed"] == ""  # of one run nobody knows the spread
    counts = {row["policy"]: int(row["parameters"]) for row in read_table(tmp_path / "parameters.csv")}
    assert counts == {"ncap": 112, "mlp:4x4": 244, "mlp:16x16": 1132, "mlp-evolution": 79372}
    trained = [tuple(line.split()[5:7]) for text in said for line in text.splitlines() if "epoch 2/2" in line]
    # no run was done twice: the sixteen above, a second seed of the circuit on four tasks, two small MLPs on two
    assert len(trained) == len(set(trained)) == 16 + 4 + 4
    cli.main(["report", str(tmp_path)])
    page = (tmp_path / "report.html").read_text("utf-8")
    assert (
        page.count("data:image/svg+xml") == len(list(tmp_path.glob("*.svg"))) == len(FIGURES) + 2
    )  # MLP weights, variable speed
    assert page.count("<table>") == len(list(tmp_path.glob("*.csv")))


def test_only_some_tasks_and_seeds(tmp_path, capsys):
    part = ["--tasks", "bumpy-run", "--seeds", "1", "--policies", "ncap"]
    cli.main(["reproduce", "performance", *part, "--out", str(tmp_path), "--threads", "1"])
    rows = read_table(tmp_path / "final.csv")
    assert [(row["task"], row["policy"], row["seed"]) for row in rows] == [("bumpy-run", "ncap", "0")]
    for words, complaint in (
        (["performance", "--seeds", "0"], "at least one seed is needed, not 0"),
        (["performance", "--policies", "mlp"], "unknown policy 'mlp'; valid: ncap, ncap-paper"),
        (["performance", "--tasks", "bumpy-swim"], "unknown task 'bumpy-swim'"),
        (["parameters", "--tasks", "flat-walk"], "parameters is about bumpy-walk and bumpy-run, not flat-walk"),
    ):
        with pytest.raises(SystemExit):
            cli.main(["reproduce", *words, "--out", str(tmp_path)])
        assert complaint in capsys.readouterr().err


def test_all_leaves_out_what_is_about_other_tasks():
    assert set(chosen(["all"], ["flat-run"])) - {"variable-speed"} == {
        "gaits",
        "units",
        "performance",
        "footfalls",
        "claims",
    }


def test_variable_speed_is_part_of_every_scale_although_its_task_is_none_of_the_papers():
    for scale in SCALES.values():
        assert scale.tasks == PAPER_TASKS
        assert "variable-speed" in chosen(["all"], scale.tasks)
        assert chosen(["variable-speed"], scale.tasks) == ["variable-speed"]


def test_tables_keep_the_runs_that_others_made_and_figures_are_drawn_from_them_alone(tmp_path, capsys):
    only = replace(TINY, contenders=("ncap",))
    row = {"task": "flat-walk", "seed": 0, "episodes": 1, "return_mean": 0.5, "test_return": 0.5, "falls": 0}
    row |= {"gait": "none", "gait_share": 1, "rhythm_ratio": "", "cost_of_transport": 1}
    ours = row | {"policy": "ncap", "return_mean": -1.0, "episodes": 7}
    theirs = [row | {"policy": "mlp-ppo", "steps": steps, "cpu_seconds": steps} for steps in (0, 100)]
    write_table(tmp_path / "performance.csv", theirs)
    write_table(tmp_path / "final.csv", [ours, *theirs[:1]])
    performance.run(library(tmp_path), only, tmp_path)
    found = {row["policy"]: float(row["return_mean"]) for row in read_table(tmp_path / "final.csv")}
    assert list(found) == ["mlp-ppo", "ncap"]
    assert found["mlp-ppo"] == 0.5
    assert found["ncap"] > 0  # made anew, since it was measured in another number of episodes
    kept = tmp_path / "policies" / "flat-walk-ncap-0.safetensors"
    again = library(tmp_path).evaluation(str(kept), only.trainings("flat-walk", "ncap")[0].world, only.episodes)
    assert again.return_mean == pytest.approx(found["ncap"], abs=1e-4)
    with pytest.raises(UserError, match="begun with other settings"):  # although its row is in the tables
        performance.run(library(tmp_path), replace(only, ncap=only.ncap | {"epochs": 3}), tmp_path)
    shutil.rmtree(tmp_path / "runs")
    performance.run(library(tmp_path), only, tmp_path)
    assert not (tmp_path / "runs").exists()  # what stands in the tables is not done again
    for figure in tmp_path.glob("*.png"):
        figure.unlink()
    cli.main(["reproduce", "all", "--draw", "--out", str(tmp_path)])
    assert "performance, algorithms, claims" in capsys.readouterr().out
    assert {figure.stem for figure in tmp_path.glob("*.png")} == {"performance", "aggregate", "algorithms"}
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "units", "--draw", "--out", str(tmp_path)])
    assert (
        "valid: performance, parameters, generalization, algorithms, claims, mlp-evolution," in capsys.readouterr().err
    )


def test_of_large_policies_the_best_of_a_task_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(performance, "LARGE", 3)
    runs = [("a", "mlp", 0, 0.9, 5), ("a", "mlp", 1, 0.95, 5), ("b", "mlp", 0, 0.1, 5), ("a", "ncap", 0, 0.2, 2)]
    places = [performance.kept_policy(tmp_path, task, policy, seed) for task, policy, seed, _, _ in runs]
    places[0].parent.mkdir()
    for place, (*_, size) in zip(places, runs, strict=True):
        place.write_bytes(b"x" * size)
    write_table(
        tmp_path / "final.csv", [dict(zip((*performance.RUN, "return_mean"), run, strict=False)) for run in runs]
    )
    performance._drop_large(tmp_path)
    assert [place.exists() for place in places] == [False, True, True, True]


def test_shipped_policies_of_a_task_are_measured_on_episodes_of_their_own(tmp_path):
    shipped.run(library(tmp_path), TINY, tmp_path)
    rows = {row["policy"]: row for row in read_table(tmp_path / "shipped.csv")}
    assert list(rows) == ["mlp-flat-walk", "ncap-flat-walk", "paper-flat-walk", "untrained"]  # no Go2, no swimmer
    alone = evaluate(load("ncap-flat-walk"), TASKS["flat-walk"], [5000])
    assert float(rows["ncap-flat-walk"]["return"]) == pytest.approx(alone.return_mean, abs=1e-4)
    assert rows["ncap-flat-walk"]["commanded"] == "walk"
    assert rows["mlp-flat-walk"]["commanded"] == ""


def test_a_summary_has_medians_over_seeds_and_counts_those_that_learned():
    run = {"task": "flat-walk", "policy": "ncap"}
    curves = [
        run | {"seed": seed, "steps": str(steps), "cpu_seconds": str(steps * 6), "test_return": found}
        for seed, learned in (("0", 20), ("1", 10), ("2", 90))
        for steps, found in ((0, "0.7"), (learned, "0.91"), (80, "0.8"))
        if steps <= 80  # the third never learns
    ]
    about = {"falls": "1", "episodes": "5", "gait_share": "1", "rhythm_ratio": "1", "cost_of_transport": "0.4"}
    final = [
        run | about | {"seed": str(seed), "return_mean": found, "gait": gait}
        for seed, (found, gait) in enumerate((("0.9", "walk"), ("0.5", "none"), ("0.7", "trot")))
    ]
    (row,) = performance_figures.summary(curves, final)
    assert (row["seeds"], row["return_mean"], row["worst"]) == (3, pytest.approx(0.7), 0.5)
    assert (row["falls"], row["episodes"], row["gaits"]) == (3, 15, "1 walk, 1 none, 1 trot")
    assert (row["learned"], row["steps_to_0.9"], row["cpu_minutes_to_0.9"]) == (2, 20.0, 2.0)  # of 10, 20, never


def test_a_folder_without_results_gets_no_report(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["report", str(tmp_path)])
    assert stop.value.code == 2
    assert "holds neither a run nor results" in capsys.readouterr().err


def test_what_is_finished_is_not_done_again(tmp_path):
    performance.run(library(tmp_path), TINY, tmp_path)
    files = sorted(path for path in tmp_path.glob("runs/**/*.safetensors")) + sorted(tmp_path.glob("evaluations/*"))
    before = {path: path.stat().st_mtime_ns for path in files}
    assert len(before) >= 4
    performance.run(library(tmp_path), TINY, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in files} == before


def test_a_kept_evaluation_is_found_by_the_content_of_its_task_in_any_process(tmp_path):
    task = replace(TASKS["flat-walk"], episode_seconds=0.6)
    found = library(tmp_path).evaluation("zero", task, 1)
    (kept,) = (tmp_path / "evaluations").iterdir()
    script = (
        "import sys\nfrom dataclasses import replace\nfrom pathlib import Path\n"
        "from ncap.experiments.library import Library\nfrom ncap.tasks import TASKS\n"
        "task = replace(TASKS['flat-walk'], episode_seconds=0.6)\n"
        "print(Library(Path(sys.argv[1]), None, 1, print).evaluation('zero', task, 1).return_mean)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{found.return_mean}\n"  # it did not say that it evaluates
    for other in (
        replace(task, target_speed=0.7),
        replace(task, terrain=Bumpy(bumpiness=0.1)),
        replace(task, rewards=()),
    ):
        assert describe_task(other) != describe_task(task)
    assert list((tmp_path / "evaluations").iterdir()) == [kept]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"task": 3}', b"\xff", b"[" * 100_000])
def test_a_kept_evaluation_that_is_damaged_or_of_an_earlier_version_is_made_anew(tmp_path, content):
    task = replace(TASKS["flat-walk"], episode_seconds=0.3)
    expected = library(tmp_path).evaluation("zero", task, 1)
    (kept,) = (tmp_path / "evaluations").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(content)
    assert library(tmp_path).evaluation("zero", task, 1) == expected
    assert kept.read_bytes() == whole
    assert library(tmp_path).evaluation("zero", task, 1) == expected  # now from the file


def test_an_interrupted_reproduction_goes_on_to_the_same_numbers(tmp_path):
    (training,) = TINY.trainings("flat-walk", "ncap")
    whole = library(tmp_path / "whole")
    whole.train([training])

    class Stop(Exception):
        pass

    def stop(_):
        raise Stop

    broken = library(tmp_path / "broken")
    broken.say = stop
    with pytest.raises(Stop):
        broken.train([training])
    assert not broken.finished(training)
    broken.say = lambda _: None
    broken.train([training])
    last = [read_policy(one.place(training) / "last.safetensors").theta for one in (whole, broken)]
    np.testing.assert_array_equal(last[0], last[1])


def test_a_folder_of_another_scale_is_refused(tmp_path):
    (training,) = TINY.trainings("flat-walk", "ncap")
    library(tmp_path).train([training])
    with pytest.raises(UserError, match="other settings"):
        library(tmp_path).train([replace(training, epochs=3)])


@pytest.mark.parametrize(
    ("arguments", "told"), [(["nothing"], "performance"), (["gaits", "--scale", "huge"], "laptop")]
)
def test_unknown_words_list_the_valid_ones(arguments, told, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["reproduce", *arguments])
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


def test_experiments_come_in_the_papers_order_and_the_longest_only_by_name():
    assert chosen(["weights", "gaits"], tuple(TASKS)) == ["gaits", "weights"]
    named_only = [
        *("leading", "evolution", "mlp-evolution", "physics", "driving", "driving-training", "posture", "righting"),
        *("bodies", "gains", "transfer", "walks", "swimmer", "shipped", "deployment"),
    ]
    assert chosen(["all"], tuple(TASKS)) == [name for name in EXPERIMENTS if name not in named_only]
    assert chosen(named_only[::-1], tuple(TASKS)) == named_only


def test_with_a_robot_only_experiments_that_can_have_any_are_done():
    anybodys = ["performance", "footfalls", "parameters", "weights", "algorithms"]
    assert chosen(["all"], PAPER_TASKS, "go2") == anybodys
    assert chosen(["bodies", "weights"], PAPER_TASKS, "go2") == ["weights", "bodies"]
    with pytest.raises(UserError, match="gaits is about the A1, or about no robot: leave out --robot"):
        chosen(["gaits"], PAPER_TASKS, "go2")


def test_rows_take_the_place_of_those_with_the_same_key_and_seeds_are_sorted_as_numbers(tmp_path):
    table = tmp_path / "t.csv"
    merge_table(table, [{"task": "b", "seed": 10, "x": 1}, {"task": "a", "seed": 0, "x": 2}], ("task", "seed"))
    merge_table(table, [{"task": "b", "seed": 2, "x": 3}, {"task": "a", "seed": 0, "x": 4}], ("task", "seed"))
    found = [(row["task"], row["seed"], row["x"]) for row in read_table(table)]
    assert found == [("a", "0", "4"), ("b", "2", "3"), ("b", "10", "1")]


def test_a_table_keeps_four_decimals_and_missing_cells(tmp_path):
    write_table(tmp_path / "t.csv", [{"a": 0.123456, "b": "x"}, {"a": 2.0, "c": 3}, {"a": 75355.33, "c": np.inf}])
    assert read_table(tmp_path / "t.csv") == [
        {"a": "0.1235", "b": "x", "c": ""},
        {"a": "2", "b": "", "c": "3"},
        {"a": "75355", "b": "", "c": "inf"},
    ]
