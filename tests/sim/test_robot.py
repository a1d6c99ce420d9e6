"""Robots as data sheets: names, files, and sentences about what is wrong with them."""

import json
import shutil
from dataclasses import replace

import pytest

from ncap.errors import UserError
from ncap.sim.a1 import A1
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
    with pytest.raises(UserError, match="unknown robot 'spot'; valid: a1"):
        find_robot("spot")


def test_a_data_sheet_carries_the_model_so_that_the_robot_can_travel_without_its_file(tmp_path):
    sheet = json.loads(json.dumps(describe_robot(A1)))
    travelled = robot_from(sheet)
    assert travelled.model_xml == A1.model.read_text()
    assert replace(travelled, model=A1.model, model_xml="") == A1
    lost = replace(travelled, model=tmp_path / "nowhere.xml")
    assert World(lost, Flat()).total_mass == pytest.approx(12.4534)  # kg, the A1's


SHEET = describe_robot(A1)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"wheels": 4}, "unknown entry 'wheels'; valid: name, model, trunk"),
        ({"kp": "strong"}, "kp is 'strong': a number is needed"),
        ({"kp": float("nan")}, "kp is nan, which is not finite"),
        ({"kd": True}, "kd is True: a number is needed"),
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
