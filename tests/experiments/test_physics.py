"""The two physics presets side by side."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.experiments import physics
from ncap.experiments.library import SCALES, Library
from ncap.experiments.physics import COMPARED, sinking, step_error
from ncap.learn.executors import LocalExecutor
from ncap.report.tables import read_table
from ncap.runs import read_config
from ncap.sim.world import PHYSICS, Physics
from ncap.tasks import TASKS, build
from ncap.trained import load

SHORT = replace(TASKS["flat-walk"], episode_seconds=0.9)


@pytest.mark.parametrize(("control_dt", "steps"), [(0.030, (30, 12)), (0.020, (20, 8)), (0.0125, (13, 5))])
def test_a_control_step_is_cut_into_as_few_equal_physics_steps_as_the_preset_allows(control_dt, steps):
    for name, count in zip(COMPARED, steps, strict=True):
        preset = PHYSICS[name]
        assert preset.step(control_dt) == pytest.approx(control_dt / count)
        assert preset.step(control_dt) <= preset.longest_step + 1e-12
    assert Physics(longest_step=0.001, integrator="euler") == PHYSICS["paper"]


def test_presets_are_compiled_into_the_model():
    for name, (step, integrator) in {"paper": (0.001, 0), "fast": (0.0025, 0)}.items():
        option = build(replace(SHORT, physics=name)).model.opt
        assert (option.timestep, option.integrator) == (pytest.approx(step), integrator)


def test_feet_that_stand_sink_in_by_two_millimetres_and_the_trunk_does_not_touch():
    feet, trunk = sinking(load("zero"), SHORT, [0])
    assert feet == pytest.approx(0.0018, abs=0.0004)
    assert trunk == 0.0


def test_a_control_step_differs_little_between_the_presets_and_not_at_all_within_one(monkeypatch):
    found = step_error(load("untrained"), SHORT)
    assert 0 < found["torque_error"] < 0.3
    assert 0 < found["position_error_mrad"] < 10
    monkeypatch.setitem(PHYSICS, "fast", PHYSICS["paper"])
    build.cache_clear()
    assert step_error(load("untrained"), SHORT) == {"torque_error": 0.0, "position_error_mrad": 0.0}
    build.cache_clear()


def test_the_experiment_writes_both_tables(tmp_path):
    scale = replace(SCALES["smoke"], seeds=1, runs={}, tasks=("flat-walk",), episodes=1, test_seconds=0.9)
    physics.run(Library(tmp_path, LocalExecutor(1), 1, lambda _: None), scale, tmp_path)
    played, trained = (read_table(tmp_path / f"{name}.csv") for name in ("physics", "physics-training"))
    assert [row["physics"] for row in played] == [row["trained_in"] for row in trained] == ["paper", "fast"]
    assert np.isfinite([float(row["foot_sinks_mm"]) for row in played]).all()
    configs = {read_config(path.parent)["physics"] for path in tmp_path.glob("physics/*/runs/*/config.json")}
    assert configs == {"paper", "fast"}
