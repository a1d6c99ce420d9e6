"""Robots as data sheets: names, files, and sentences about what is wrong with them."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from ncap.errors import UserError
from ncap.sim.a1 import A1
from ncap.sim.go import GO2
from ncap.sim.robot import ROBOTS, describe_robot, find_robot, robot_from
from ncap.sim.terrain import Flat
from ncap.sim.world import World
from ncap.tasks import TASKS, with_robot


def test_a_robot_is_found_by_name_by_data_sheet_or_in_a_file_that_registers_it(tmp_path, monkeypatch):
    assert find_robot("a1") is A1
    shutil.copy(A1.model, tmp_path / "body.xml")
    sheet = describe_robot(A1) | {"name": "mine", "model": "body.xml", "model_xml": ""}
    (tmp_path / "mine.json").write_text(json.dumps(sheet))
    mine = find_robot(str(tmp_path / "mine.json"))
    assert mine == replace(A1, name="mine", model=tmp_path / "body.xml")
    assert with_robot(TASKS["flat-walk"], str(tmp_path / "mine.json")).robot == mine
    monkeypatch.setitem(ROBOTS, "strong", None)  # so that it is taken away again
    (tmp_path / "mine.py").write_text(
        "from dataclasses import replace\nfrom ncap.sim.robot import ROBOTS\n"
        "ROBOTS['strong'] = replace(ROBOTS['a1'], name='strong', kp=90.0)\n"
    )
    assert find_robot(str(tmp_path / "mine.py")) == replace(A1, name="strong", kp=90.0)
    with pytest.raises(UserError, match="unknown robot 'spot'; valid: a1, a1-turning, go1, go1-turning, go2"):
        find_robot("spot")


def test_a_data_sheet_carries_the_model_so_that_the_robot_can_travel_without_its_file(tmp_path):
    sheet = json.loads(json.dumps(describe_robot(A1)))
    travelled = robot_from(sheet)
    assert travelled.model_xml == A1.model.read_text()
    assert replace(travelled, model=A1.model, model_xml="") == A1
    lost = replace(travelled, model=tmp_path / "nowhere.xml")
    assert World(lost, Flat()).total_mass == pytest.approx(12.4534)  # kg, the A1's


def test_a_number_means_all_joints_and_three_mean_hip_thigh_and_calf():
    same = robot_from(describe_robot(A1) | {"torque_limit": [33.5] * 3, "velocity_limit": [15, 15.0, 15]})
    assert (same.torque_limits == A1.torque_limits).all()
    assert (same.velocity_limits == A1.velocity_limits).all()
    assert (A1.torque_limits == np.full((4, 3), 33.5)).all()
    other = robot_from(describe_robot(A1) | {"torque_limit": [10, 20.0, 40], "velocity_limit": [5, 10, 20]})
    world = World(other, Flat())
    assert world.model.actuator_forcerange[:, 1].tolist() == [10.0, 20.0, 40.0] * 4
    ones, still = np.ones((1, 4, 3)), np.zeros((1, 3))
    level = np.array([[0.0, 0.0, 1.0]])
    observed = other.observation(A1.mid[None], 10 * ones, -5 * ones, np.zeros((1, 4)), level, still)[0, 2]
    assert observed[3:9] == pytest.approx([1.0, 0.5, 0.25, -1.0, -0.5, -0.25])


def test_what_a_data_sheet_does_not_know_is_left_out_of_its_description():
    assert not {"joint_min", "joint_max", "motor_speed"} & describe_robot(A1).keys()
    described = json.loads(json.dumps(describe_robot(GO2)))
    assert described["motor_speed"] == [30.1, 30.1, 15.7]
    assert replace(robot_from(described), model=GO2.model, model_xml="") == GO2


SHEET = describe_robot(A1)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"wheels": 4}, "unknown entry 'wheels'; valid: name, model, trunk"),
        ({"kp": "strong"}, "kp is 'strong': a number is needed"),
        ({"kp": float("nan")}, "kp is nan, which is not finite"),
        ({"kd": True}, "kd is True: a number is needed"),
        ({"torque_limit": True}, "torque_limit is True: a number or a list is needed"),
        ({"torque_limit": [23.7, 35.5]}, "torque_limit is a list: a list of length 3 is needed"),
        ({"torque_limit": [23.7, 23.7, 0.0]}, "robot a1: torque_limit must be above 0"),
        ({"torque_limit": [1.0, float("inf"), 1.0]}, "torque_limit is a list, which is not finite"),
        ({"motor_speed": -1}, "robot a1: motor_speed must be above 0"),
        ({"joint_min": SHEET["position_min"][:1]}, "robot a1: joint_min needs a row per leg"),
        ({"joint_max": SHEET["position_mid"]}, "position_min and position_max must lie within joint_min and joint_max"),
        ({"trunk": 3}, "trunk is 3: a text is needed"),
        ({"feet": "FL_foot"}, "feet is 'FL_foot': a list is needed"),
        ({"joints": [["a", "b"]]}, "joints is a list: a list of length 3 is needed"),
        ({"position_mid": 0.0}, "position_mid is 0.0: a list is needed"),
        ({"position_mid": SHEET["position_mid"][:3]}, "robot a1: position_mid needs a row per leg"),
        ({"position_min": SHEET["position_mid"]}, "position_min < position_mid < position_max must hold"),
    ],
)
def test_what_is_wrong_with_a_data_sheet_is_named(tmp_path, change, wrong):
    with pytest.raises(UserError, match=wrong):
        robot_from(SHEET | change)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(SHEET | change))
    with pytest.raises(UserError, match=f"mine.json: .*{wrong}"):
        find_robot(str(path))


def test_what_is_no_data_sheet_at_all_is_named(tmp_path):
    path = tmp_path / "mine.json"
    wrongs = {
        "{": "is not JSON",
        "[]": "is a list, not a table with names and values",
        "{}": "name is missing",
    }
    for text, wrong in wrongs.items():
        path.write_text(text)
        with pytest.raises(UserError, match=f"mine.json.*{wrong}"):
            find_robot(str(path))
    with pytest.raises(UserError, match=r"none\.json does not exist"):
        find_robot(str(tmp_path / "none.json"))
    without = {name: value for name, value in SHEET.items() if name != "kp"}
    with pytest.raises(UserError, match="the robot: kp is missing"):
        robot_from(without)
