"""An exported policy, known only by its two files, is the policy."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

import ncap
from ncap import cli
from ncap.circuits.units import UNITS
from ncap.errors import UserError
from ncap.evaluation import task_for
from ncap.export import contract, export_onnx, steps
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import rollout
from ncap.tasks import TASKS, find_task, with_robot
from ncap.trained import TrainedPolicy, load, untrained

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

SHORT = replace(TASKS["bumpy-walk"], episode_seconds=1.5)
DRIVE = replace(TASKS["flat-drive"], episode_seconds=1.5)


@dataclass
class Stranger:
    """A controller for one robot that knows nothing but the files of an export."""

    session: object
    agreed: dict

    def reset(self, seeds, command=None):
        inputs = self.agreed["inputs"]
        return np.array([inputs["state"]["start"]]) if "state" in inputs else None

    def act(self, state, observation, command=None):
        inputs = self.agreed["inputs"]
        given = {"observation": observation[..., : len(inputs["observation"]) // 4].reshape(1, -1)}
        if state is not None:
            given |= {"state": state, "command": np.array([[entry["own"] for entry in inputs["command"]]])}
        action, *rest = self.session.run(None, given)
        return (rest[0] if rest else None), action.reshape(1, 4, 3)

    def signals(self, state):
        return {}


def stranger(path) -> Stranger:
    agreed = json.loads(path.with_suffix(".json").read_text("utf-8"))
    return Stranger(onnxruntime.InferenceSession(path.read_bytes()), agreed)


def rhythm_trained() -> TrainedPolicy:
    """A circuit whose rhythm generator is trained, too, and has other numbers than its table."""
    policy = NCAPPolicy(circuit=ncap.animal().trained_by(("AF", "BC", "RG", "PF")))
    return TrainedPolicy(policy=policy, theta=0.97 * policy.space.initial, name="rhythm-trained")


def small_mlp(wishes=0, **changes) -> TrainedPolicy:
    inputs = 40 + wishes
    policy = MLPPolicy(hidden=(9, 7), mean=(0.1,) * inputs, std=(0.3,) * inputs, wishes=wishes, **changes)
    theta = 0.4 * np.random.default_rng(1).normal(size=policy.space.size)
    return TrainedPolicy(policy=policy, theta=theta, name="small")


PLAYERS = {
    "trained": lambda: load("ncap-flat-walk"),
    "with posture": lambda: load("untrained"),
    "the paper's": lambda: load("paper-flat-walk"),
    "the released": lambda: load("untrained").with_circuit("released"),
    "lesioned": lambda: load("ncap-flat-walk").without(["V0v", "afferents"]),
    "rhythm trained": rhythm_trained,
    "tanh": lambda: small_mlp(activation="tanh"),
    "relu, clipped": lambda: small_mlp(output="clip"),
    "a shipped mlp": lambda: load("mlp-flat-walk"),
}


@pytest.mark.parametrize("name", PLAYERS)
def test_a_stranger_with_the_two_files_plays_the_same_episode(name, tmp_path):
    trained = PLAYERS[name]()
    agreed = export_onnx(trained, SHORT, tmp_path / "new" / "walk.onnx")
    assert agreed["checked"]["largest_difference"] < 1e-9
    same = stranger(tmp_path / "new" / "walk.onnx")
    assert same.agreed == json.loads(json.dumps(agreed))
    own = {entry["name"]: entry["own"] for entry in agreed["inputs"].get("command", ())}
    command = {name: np.array([value]) for name, value in own.items()} or None
    signals = ("action", "joint_position")
    ours = rollout(SHORT, trained.controller(1), [0], command=command, record=signals).signals
    theirs = rollout(SHORT, same, [0], record=signals).signals
    assert np.nanmax(np.abs(ours["action"])) > 0.05
    for signal in signals:
        np.testing.assert_allclose(theirs[signal], ours[signal], atol=1e-6)


def test_every_type_of_neuron_has_its_step():
    for kind in UNITS.values():
        assert type(kind.group([kind()], 0.005)) in steps._UNITS


@pytest.mark.parametrize("robot", ["a1", "go2"])
def test_a_contract_has_the_maps_of_the_robot(robot):
    trained, task = load("untrained"), with_robot(find_task("flat-walk"), robot)
    agreed, body = contract(trained, task), task.robot
    draws = np.random.default_rng(2)
    measured = {
        "position": draws.uniform(-3, 3, (50, 4, 3)),
        "torque": draws.uniform(-40, 40, (50, 4, 3)),
        "velocity": draws.uniform(-40, 40, (50, 4, 3)),
    }
    foot = draws.uniform(-20, 300, (50, 4))
    roll, pitch = draws.uniform(-0.7, 0.7, (2, 50))
    rates = draws.uniform(-3, 3, (50, 3))
    # the vertical in a trunk's frame has components in the ratios tan(roll) = y / z, tan(pitch) = -x / z
    up = np.stack((-np.tan(pitch), np.tan(roll), np.ones(50)), axis=1)
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    seen = body.observation(*measured.values(), foot, up, rates).reshape(50, -1)
    trunk = {"roll": roll, "roll rate": rates[:, 0], "pitch": pitch, "pitch rate": rates[:, 1]}
    legs, joints = ("FL", "FR", "HL", "HR"), ("hip", "thigh", "calf")
    for column, entry in enumerate(agreed["inputs"]["observation"]):
        name, leg = entry["name"].split(".")
        if name in trunk:
            value = trunk[name]
        elif name == "foot":
            value = foot[:, legs.index(leg)]
        else:
            joint, kind = name.split()
            value = measured[kind][:, legs.index(leg), joints.index(joint)]
        places, ends = np.array(entry["at"]), np.array([-1.0, 0.0, 1.0])
        if places[0] > places[2]:
            places, ends = places[::-1], ends[::-1]
        np.testing.assert_allclose(np.interp(value, places, ends), seen[:, column], atol=1e-12)
    assert column == seen.shape[1] - 1
    action = draws.uniform(-1.5, 1.5, (50, 12))
    for column, entry in enumerate(agreed["action"]):
        leg, joint = divmod(column, 3)
        assert (entry["joint"], entry["leg"], entry["part"]) == (body.joints[leg][joint], legs[leg], joints[joint])
        wanted = body.targets(action.reshape(50, 4, 3))[:, leg, joint]
        np.testing.assert_allclose(np.interp(action[:, column], (-1, 0, 1), entry["at"]), wanted, atol=1e-12)
    assert agreed["gains"] == {"kp": body.kp, "kd": body.kd}
    assert agreed["control_dt"] == 0.03


def test_an_mlp_that_drives_hears_what_is_wanted(tmp_path):
    trained = small_mlp(wishes=3)
    agreed = export_onnx(trained, DRIVE, tmp_path / "drive.onnx")
    assert [entry["at"][2] for entry in agreed["inputs"]["wish"]] == [1.2, 1.0, 3.0]
    with pytest.raises(UserError, match="hears 3 wishes, which bumpy-walk does not have"):
        export_onnx(trained, SHORT, tmp_path / "walk.onnx")


@pytest.mark.parametrize("factor", [1.00001, np.nan])
def test_an_export_that_differs_from_our_own_inference_is_not_written(factor, tmp_path, monkeypatch):
    almost = {**steps._UNITS}
    kind = next(group for group in almost if group.__name__ == "TanhGroup")
    almost[kind] = lambda graph, group, memory, drive, repeats: ([], graph.apply("Mul", drive, factor))
    monkeypatch.setattr(steps, "_UNITS", almost)
    with pytest.raises(UserError, match=r"differs by .* from our own inference: not written"):
        export_onnx(load("untrained"), SHORT, tmp_path / "walk.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_contract_takes_the_place_of_a_contract_but_of_no_other_file(tmp_path):
    table, untouched = tmp_path / "mine.json", '{"plan": "quadruped"}'
    for content in (untouched, "[]", "no JSON"):
        table.write_text(content)
        with pytest.raises(UserError, match=r"mine\.json would become the contract, but is another file"):
            export_onnx(small_mlp(), SHORT, tmp_path / "mine.onnx")
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("mine.json", content)]
    table.unlink()
    for _ in range(2):
        export_onnx(small_mlp(), SHORT, tmp_path / "mine.onnx")


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_without_the_extra_the_line_that_installs_it_is_said(package, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(UserError, match=r"needs the extra onnx: .* -m pip install"):
        export_onnx(untrained(MLPPolicy(hidden=())), SHORT, tmp_path / "walk.onnx")
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_both_files_for_the_robot_that_is_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cli.main(["export", "untrained", "--onnx", "--robot", "go2"])
    assert "200 steps agree" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["untrained.json", "untrained.onnx"]
    assert stranger(tmp_path / "untrained.onnx").agreed["robot"] == "go2"
    found = task_for(load("untrained"), None, "go2")
    assert stranger(tmp_path / "untrained.onnx").agreed["gains"]["kp"] == found.robot.kp


def test_files_are_called_like_the_run_or_the_file_dots_included(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "runs" / "flat-walk-mlp-0.3ms-1"
    run.mkdir(parents=True)
    small_mlp().save(run / "best.safetensors")
    small_mlp().save(tmp_path / "runs" / "v1.2.safetensors")
    for policy in ("runs/flat-walk-mlp-0.3ms-1/", "runs/v1.2.safetensors"):
        cli.main(["export", policy, "--onnx", "--task", "flat-walk"])
    assert {path.stem for path in tmp_path.glob("*.*")} == {"flat-walk-mlp-0.3ms-1", "v1.2"}
