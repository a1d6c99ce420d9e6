"""Does the rhythm lead? What is compared differs in one part of the table, or in the weight of the footfalls, only."""

from dataclasses import replace

import pytest

from ncap.circuits.animal import AFFERENT_LIMIT, animal, leads
from ncap.circuits.tables import load_circuit
from ncap.circuits.units import BasicUnit, SumUnit
from ncap.experiments import leading
from ncap.experiments.leading import CONDITIONS, MEASURES, Condition, changed, trainings
from ncap.experiments.library import SCALES, Library
from ncap.learn.executors import LocalExecutor
from ncap.learn.settings import Training
from ncap.report.tables import read_table
from ncap.tasks import TASKS

SMALL = {"epochs": 1, "population": 4, "episodes": 1, "training_seconds": 0.3, "episode_seconds": 0.3}
TINY = replace(SCALES["smoke"], seeds=2, ncap=SMALL, tasks=("flat-walk",))


@pytest.mark.parametrize("limit", [None, 0.05, 0.15])
def test_another_bound_changes_the_sums_and_nothing_else(limit):
    found = changed(animal(), Condition(limit=limit))
    sums = {row.name for row in animal().neurons if isinstance(row.unit, SumUnit)}
    assert sums == {"afferent_flexor", "afferent_extensor"}
    assert {row.unit for row in found.neurons if row.name in sums} == {SumUnit(limit=limit)}
    others = [row for row in found.neurons if row.name not in sums]
    assert others == [row for row in animal().neurons if row.name not in sums]
    assert (found.synapses, found.inputs, found.dt) == (animal().synapses, animal().inputs, animal().dt)
    assert leads(found) == (limit is not None)
    assert changed(found, Condition(limit=AFFERENT_LIMIT)) == animal()


def test_thighs_at_once_changes_the_late_neurons_and_nothing_else():
    found = changed(animal(), CONDITIONS["thighs at once"])
    late = {"late_flexor", "late_extensor"}
    assert {row.unit for row in found.neurons if row.name in late} == {BasicUnit(voltage_time=0.001)}
    others = [row for row in found.neurons if row.name not in late]
    assert others == [row for row in animal().neurons if row.name not in late]
    assert found.synapses == animal().synapses


def test_every_condition_is_another_and_the_last_is_the_usual_training(tmp_path):
    assert len(set(CONDITIONS.values())) == len(CONDITIONS) == 4
    usual = Training(task="flat-walk", **SMALL).filled()
    *_, last = CONDITIONS.values()
    (first, second) = trainings("flat-walk", last, TINY, tmp_path / "leading.json")
    assert load_circuit(tmp_path / "leading.json") == animal()
    assert first == replace(usual, seed=0)
    assert (first.initial_policy(), second.seed) == (usual.initial_policy(), 1)


@pytest.mark.parametrize(("limit", "footfalls"), [(None, 0.0), (None, 0.5), (0.15, 0.5), (0.05, 0.0)])
def test_a_condition_sets_the_bound_and_the_weight_also_where_they_are_not_the_tables_usual(tmp_path, limit, footfalls):
    condition = Condition(limit=limit, footfalls=footfalls)
    for training in trainings("flat-run", condition, TINY, tmp_path / "leading.json"):
        assert training.footfall_weight == footfalls
        assert training.initial_policy().circuit == changed(animal(), condition)
        assert (training.command, training.task) == (TASKS["flat-run"].command, "flat-run")


def test_a_long_scale_is_cut_to_the_epochs_of_the_comparison(tmp_path):
    longer = replace(TINY, ncap=SMALL | {"epochs": 60})
    assert trainings("flat-walk", Condition(), longer, tmp_path / "leading.json")[0].epochs == leading.EPOCHS == 20


def test_every_condition_and_seed_has_a_row_and_the_figure_all_measures(tmp_path, monkeypatch):
    some = {name: CONDITIONS[name] for name in ("afferents unbounded", "everything")}
    monkeypatch.setattr(leading, "CONDITIONS", some)
    short = replace(TINY, episodes=1)
    library = Library(tmp_path, LocalExecutor(1), 1, lambda _: None)
    leading.run(library, short, tmp_path)
    rows = read_table(tmp_path / "leading.csv")
    assert [(row["task"], row["condition"], row["seed"]) for row in rows] == [
        ("flat-walk", name, seed) for name in some for seed in ("0", "1")
    ]
    assert set(MEASURES) < set(rows[0])
    assert (tmp_path / "leading.png").read_bytes().startswith(b"\x89PNG")
    runs = sorted(path.parent.name for path in tmp_path.glob("leading/*/runs"))
    assert runs == ["afferents-unbounded", "everything"]
