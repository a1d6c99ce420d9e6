"""What `ncap bench --json` prints, and the model of benchmarks/scaling.py."""

import json
import runpy
from pathlib import Path

import pytest

from ncap import bench
from ncap.cli import machine


def test_the_json_of_bench_has_a_positive_number_for_every_ground_and_population(monkeypatch, capsys):
    measure = bench.measure
    monkeypatch.setattr(bench, "measure", lambda robot: measure(robot, steps={16: 1, 48: 1, 256: 1}, repetitions=1))
    machine.bench(json=True)
    found = json.loads(capsys.readouterr().out)
    by_population = ("16", "48", "256")
    wanted = {
        "steps_per_cpu_second": ("flat", "bumpy", "flat_fast", "bumpy_fast"),
        "closed_loop_share": ("ncap", "ncap_fast", "mlp"),
    }
    assert {name: tuple(values) for name, values in found.items()} == wanted
    shares = found["closed_loop_share"]
    assert tuple(shares["ncap"]) == tuple(shares["ncap_fast"]) == by_population
    numbers = [*found["steps_per_cpu_second"].values(), *shares["ncap"].values(), *shares["ncap_fast"].values()]
    assert all(number > 0 for number in (*numbers, shares["mlp"]))


@pytest.fixture(scope="module")
def scaling():
    """The names of benchmarks/scaling.py, which is no part of the package."""
    return runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "scaling.py"))


def test_tasks_go_to_the_core_that_is_free_first(scaling):
    # Core A plays 3, core B 1 and then 2; both are free at 3, and one of them plays the last until 7.
    assert scaling["playing_seconds"]([3, 1, 2, 4], 2) == 7
    assert scaling["playing_seconds"]([3, 1, 2, 4], 10) == 4


def test_an_epoch_costs_its_rounds_its_tasks_and_its_candidates(scaling):
    costs = scaling["Costs"](
        chunk_seconds=0.9,
        test_seconds=2.9,
        idle_seconds=0.1,
        driver_seconds=0.01,
        task_bytes=0.04e9,
        node_bytes=1e9,
        update_seconds=0.005,
    )
    # 40 candidates are 3 chunks, twice: 6 tasks of 1 s. Four cores play them in 1 s and in half of the second round.
    # The test, 3 s, is the last task and begins after 1 s. Sending: 7 tasks of 0.01 s + 0.04 GB, and one node's 1 GB,
    # at 1 GB/s: 0.35 s + 1 s. Updating: 40 times 0.005 s.
    epoch = scaling["predict"](costs, 40, 4, episodes=2)
    assert epoch.playing == pytest.approx(4.0)
    assert epoch.sending == pytest.approx(1.35)
    assert epoch.updating == pytest.approx(0.2)
    assert epoch.efficiency == pytest.approx((6 * 0.9 + 2.9) / (4 * 5.55))
    # With the test as the first task, the other three cores play six tasks in two rounds, and the test ends after 3 s.
    assert scaling["predict"](costs, 40, 4, episodes=2, test_first=True).playing == pytest.approx(3.0)
    # Four and two chunks in a task: 3.7 s, 1.9 s and the test's 3 s, all at once, and 3 tasks sent.
    epoch = scaling["predict"](costs, 40, 4, episodes=2, together=4)
    assert epoch.playing == pytest.approx(3.7)
    assert epoch.sending == pytest.approx(1.15)
