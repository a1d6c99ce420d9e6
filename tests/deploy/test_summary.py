import json

import numpy as np
import pytest

from ncap.deploy.flight import PHASES, facts_about, row_layout, write_recording
from ncap.deploy.summary import summarise
from ncap.sim.a1 import A1
from ncap.trained import load


def flight(folder, *, policy: bool) -> None:
    """Two seconds of standing, and two in which thighs turn back under standing feet while the trunk leans 10°."""
    facts = facts_about(load("zero"), A1, link="twin", armed=True, seed=0)
    rows = np.zeros(2000, row_layout(0))
    rows["time"] = 7.0 + 0.002 * np.arange(2000)
    rows["phase"] = PHASES.index("hold")
    rows["quaternion"] = (1.0, 0.0, 0.0, 0.0)
    rows["joint_position"], rows["foot_force"] = A1.mid, 30.0
    if policy:
        rows["phase"][1000:] = PHASES.index("policy")
        rows["quaternion"][1500:] = (np.cos(np.deg2rad(5)), np.sin(np.deg2rad(5)), 0.0, 0.0)
        rows["joint_velocity"][1000:, :, 1] = 1.0
    folder.mkdir()
    (folder / "about.json").write_text(json.dumps(vars(facts)))
    (folder / "log.rows").write_bytes(rows.tobytes())
    write_recording(folder)


def test_a_flight_is_summed_up_over_the_time_in_which_the_policy_drove(tmp_path):
    flight(tmp_path / "one", policy=True)
    found = summarise(tmp_path / "one")
    assert found.seconds == pytest.approx(1.998)
    assert found.tilt == pytest.approx(10.0, abs=0.01)
    # a thigh that turns with 1 rad/s over a foot that rolls carries the trunk on by the height of its hip:
    # 0.2 cos(0.4) + 0.2 cos(0.8) m fore, 0.2 cos(0.7) + 0.2 cos(0.5) m hind, and 0.02 m of the foot's radius
    heights = (0.2 * np.cos([0.4, 0.8]).sum(), 0.2 * np.cos([0.7, 0.5]).sum())
    speed = float(np.mean(heights)) + 0.02
    assert found.distance == pytest.approx(speed * 1.998, rel=0.03)
    assert found.way == pytest.approx(found.distance, rel=0.15)  # in whole strides
    assert f"{found.distance:.2f} m from where it began; largest tilt 10°" in str(found)


def test_a_flight_that_ended_before_the_policy_has_none(tmp_path):
    flight(tmp_path / "one", policy=False)
    assert summarise(tmp_path / "one") is None
