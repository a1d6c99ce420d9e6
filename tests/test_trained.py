import pickle
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy

from ncap import files
from ncap.circuits.animal import animal
from ncap.circuits.rhythm import PRESETS
from ncap.circuits.tables import load_circuit, save_circuit
from ncap.errors import UserError
from ncap.evaluation import own_command, task_for
from ncap.files import read_tensors, write_tensors
from ncap.policies.controller import RandomPolicy, ZeroPolicy
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.sim.a1 import A1
from ncap.sim.robot import ROBOTS
from ncap.tasks import TASKS
from ncap.trained import TrainedPolicy, find_policy, load, read_policy, untrained

SITES = ("FL", "FR", "HL", "HR")


@pytest.mark.parametrize(
    "policy",
    [
        NCAPPolicy(command=0.35, copies=8),
        NCAPPolicy(circuit=animal("released").trained_by(["RG"])),
        MLPPolicy(hidden=(4, 3), std=(2.0,) * 40),
        ZeroPolicy(),
        RandomPolicy(),
    ],
    ids=["ncap", "ncap, released, RG", "mlp", "zero", "random"],
)
def test_a_policy_comes_back_as_it_went(tmp_path, policy):
    theta = np.random.default_rng(0).normal(size=policy.space.size)
    TrainedPolicy(policy=policy, theta=theta, about={"note": "hello"}).save(tmp_path / "p.safetensors")
    loaded = read_policy(tmp_path / "p.safetensors")
    assert loaded.policy == policy
    assert np.array_equal(loaded.theta, theta)
    assert loaded.about == {"note": "hello"}


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.safetensors"
    untrained(NCAPPolicy(command=0.2)).save(path)
    return path


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.99])
def test_a_truncated_file_is_refused(good, share):
    data = good.read_bytes()
    good.write_bytes(data[: int(share * len(data))])
    with pytest.raises(UserError, match=r"good\.safetensors is not a complete safetensors file"):
        read_policy(good)


def test_an_altered_weight_or_description_is_refused(good):
    data = bytearray(good.read_bytes())
    data[-3] ^= 1
    good.write_bytes(data)
    with pytest.raises(UserError, match="altered or damaged"):
        read_policy(good)
    data[-3] ^= 1
    good.write_bytes(bytes(data).replace(b'\\"command\\": 0.2', b'\\"command\\": 0.9'))
    with pytest.raises(UserError, match="altered or damaged"):
        read_policy(good)


def test_a_pickle_is_refused_without_running_it(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was run",))

    (tmp_path / "trap").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(UserError, match="not a complete safetensors file"):
        read_policy(tmp_path / "trap")


def test_a_huge_header_and_a_huge_file_are_refused(tmp_path, monkeypatch):
    (tmp_path / "header").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    with pytest.raises(UserError, match="not a complete safetensors file"):
        read_policy(tmp_path / "header")
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    (tmp_path / "large").write_bytes(bytes(1000))
    with pytest.raises(UserError, match="more than any file of ours"):
        read_policy(tmp_path / "large")


def test_foreign_safetensors_wrong_shapes_and_nan_are_refused(tmp_path, good):
    safetensors.numpy.save_file({"theta": np.zeros(112)}, tmp_path / "foreign")
    with pytest.raises(UserError, match="not one of ncap's"):
        read_policy(tmp_path / "foreign")
    description = read_tensors(good)[1]
    wrongs = {"short": (np.zeros(111), "112 weights are needed"), "nan": (np.full(112, np.nan), "not finite")}
    for name, (theta, wrong) in wrongs.items():
        write_tensors(tmp_path / name, {"theta": theta}, description)
        with pytest.raises(UserError, match=f"{name}.*{wrong}"):
            read_policy(tmp_path / name)
        with pytest.raises(UserError, match=wrong):
            TrainedPolicy(policy=NCAPPolicy(command=0.2), theta=theta)
    write_tensors(tmp_path / "checkpoint", {"a": np.zeros(2)}, {"epoch": 1})
    with pytest.raises(UserError, match="holds no policy"):
        read_policy(tmp_path / "checkpoint")
    with pytest.raises(UserError, match="does not exist"):
        read_policy(tmp_path / "nothing")


def test_policies_of_another_version_are_refused_by_the_name_of_their_file(tmp_path):
    wrongs = {"older": ({"kind": "ncap", "command": 0.2, "amplitude": 1.0}, "unknown entry 'amplitude'"),
              "newer": ({"kind": "lamprey"}, "unknown kind of policy 'lamprey'; valid: ncap, mlp")}  # fmt: skip
    for name, (description, wrong) in wrongs.items():
        write_tensors(tmp_path / name, {"theta": np.zeros(112)}, {"policy": description, "about": {}})
        with pytest.raises(UserError, match=f"{name}: .*{wrong}"):
            read_policy(tmp_path / name)


def test_a_full_disk_leaves_the_old_file_and_no_litter(good, monkeypatch):
    before = good.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match="No space left on device; what was there before is unchanged"):
        untrained(NCAPPolicy(command=0.9)).save(good)
    assert good.read_bytes() == before
    assert [path.name for path in good.parent.iterdir()] == [good.name]


def test_arrays_of_any_shape_come_back(tmp_path):
    tensors = {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros((0,)), "c": np.array(3.0)}
    write_tensors(tmp_path / "t", tensors, {"x": [1, 2]})
    found, description = read_tensors(tmp_path / "t")
    assert description == {"x": [1, 2]}
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)


# --- finding one --------------------------------------------------------------------------------------------------


def test_built_in_policies_shipped_ones_runs_and_files_are_found_by_name(tmp_path, good):
    assert isinstance(load("zero").policy, ZeroPolicy)
    assert isinstance(load("random").policy, RandomPolicy)
    assert np.array_equal(load("untrained").theta, NCAPPolicy().space.initial)
    assert (load("ncap-bumpy-run").name, load("ncap-bumpy-run").task) == ("ncap-bumpy-run", "bumpy-run")
    good.rename(tmp_path / "best.safetensors")
    for place in (tmp_path, tmp_path / "best.safetensors", str(tmp_path)):
        assert (load(place).policy.command, load(place).name) == (0.2, str(place))
    with pytest.raises(UserError, match="unknown policy 'horse'; valid: zero, random, untrained, mlp-flat-run"):
        load("horse")


def test_a_policy_can_be_asked_for_with_another_circuit_command_and_knock_outs():
    found = find_policy("ncap-flat-walk", circuit="released", without=["V0v", "foot+"], command=0.7)
    assert found.policy.command == 0.7
    assert found.policy.circuit.dt == 0.030
    assert found.parameters == 88
    assert found.name == "ncap-flat-walk without V0v, foot+"
    for wish in ({"circuit": "released"}, {"without": ["V0v"]}, {"command": 0.5}):
        with pytest.raises(UserError, match=r"mlp-flat-run has no circuit, so a .* means nothing to it"):
            find_policy("mlp-flat-run", **wish)
    with pytest.raises(UserError, match=r"unknown knock-out 'V7'; valid: V0, V0d, V0v, V3, diagonal, homolateral"):
        find_policy("ncap-flat-walk", without=["V7"])


def test_a_policy_is_measured_on_the_task_and_robot_that_it_was_trained_for(tmp_path):
    bumpy = load("ncap-bumpy-walk")
    assert task_for(bumpy) == TASKS["bumpy-walk"]
    assert task_for(bumpy, "flat-run") == TASKS["flat-run"]
    assert task_for(load("untrained")) == TASKS["flat-walk"]
    assert bumpy.evaluate(seeds=[0]).task == "bumpy-walk"
    lost = replace(bumpy, about={"task": "moon-walk"})
    with pytest.raises(UserError, match="was trained for 'moon-walk', which is not known here: say --task"):
        task_for(lost)


def test_the_robot_of_a_policy_comes_with_it_unless_another_is_asked_for(monkeypatch):
    tall = replace(A1, name="tall", leg_length=0.5)
    monkeypatch.setitem(ROBOTS, "tall", tall)
    trained = replace(load("ncap-flat-walk"), about={"task": "flat-walk", "robot": "tall"})
    assert task_for(trained).robot == tall
    assert task_for(trained, "bumpy-run").robot == tall
    assert task_for(trained, robot="a1").robot == A1


def test_another_control_step_than_the_tasks_is_an_error():
    slow = untrained(NCAPPolicy(control_dt=0.060))
    with pytest.raises(UserError, match=r"untrained acts every 0\.06 s, but flat-walk every 0\.03 s"):
        task_for(slow)
    assert task_for(slow, replace(TASKS["flat-walk"], control_dt=0.060)).control_dt == 0.060


def test_a_trained_policy_keeps_its_command_and_an_untrained_one_has_the_tasks():
    run = TASKS["flat-run"]
    assert own_command(load("untrained"), run) == run.command
    assert own_command(load("ncap-flat-walk"), run) is None
    assert own_command(load("untrained").with_command(0.4), run) is None


# --- other circuits -----------------------------------------------------------------------------------------------


def acted(found, steps=60, seeds=(1, 2)):
    """(T, P, leg, joint) actions on random observations."""
    controller = found.controller(len(seeds))
    state, actions = controller.reset(list(seeds)), []
    for observation in np.random.default_rng(0).uniform(-1, 1, (steps, len(seeds), 4, 14)):
        state, action = controller.act(state, observation)
        actions.append(action)
    return np.array(actions)


@pytest.mark.parametrize(("name", "weights"), [("paper-flat-walk", 92), ("ncap-flat-walk", 112)])
def test_a_knocked_out_population_acts_as_one_whose_synapses_weigh_nothing(name, weights):
    trained = load(name).with_command(0.5)  # a trot, which V0v holds together
    cut = trained.without(["V0v"])
    assert cut.parameters == weights
    assert np.array_equal(cut.theta, trained.theta)
    spec = trained.policy.circuit
    silent = tuple(replace(row, weight=0.0) if row.source == "diag_V0v" else row for row in spec.synapses)
    edited = replace(trained, policy=replace(trained.policy, circuit=replace(spec, synapses=silent)))
    assert acted(cut) == pytest.approx(acted(edited), abs=1e-12)
    assert np.abs(acted(cut) - acted(trained)).max() > 0.1


@pytest.mark.parametrize(("name", "weights"), [("paper-flat-walk", 92), ("ncap-flat-walk", 112)])
def test_a_knocked_out_afferent_takes_its_weights_along_and_acts_as_if_they_were_0(name, weights):
    trained = load(name)
    cut = trained.without(["foot+"])
    assert cut.parameters == weights - 2 * 2  # of flexor and extensor in both girdles
    names = trained.policy.space.names
    lost = ["foot+" in name for name in names]
    assert sum(lost) == 4
    assert np.array_equal(cut.theta, trained.theta[np.logical_not(lost)])
    assert acted(cut) == pytest.approx(acted(replace(trained, theta=np.where(lost, 0.0, trained.theta))), abs=1e-12)
    assert np.abs(acted(cut) - acted(trained)).max() > 0.1


def test_a_single_neuron_and_a_single_synapse_can_be_knocked_out():
    trained = load("ncap-flat-walk")
    one = trained.without(["flexor.FL"])
    assert one.policy.circuit.neuron("flexor").sites == SITES[1:]
    # the left foreleg's motor neurons hear nothing of a flexor, and no burst: the leg never swings by itself
    assert not np.array_equal(acted(one)[:, :, 0], acted(trained)[:, :, 0])
    cut = trained.without(["cross_V0d>flexor cross"])
    rows = [row.key for row in trained.policy.circuit.synapses]
    assert [row.key for row in cut.policy.circuit.synapses] == [key for key in rows if key != "cross_V0d>flexor cross"]
    assert np.array_equal(cut.theta, trained.theta)


def test_the_whole_animal_goes_through_a_file_unchanged(tmp_path):
    for preset in PRESETS:
        path = tmp_path / f"{preset}.json"
        save_circuit(animal(preset), path)
        assert load_circuit(path) == animal(preset)
    trained = load("ncap-flat-walk")
    loaded = replace(trained, policy=replace(trained.policy, circuit=load_circuit(tmp_path / "default.json")))
    assert np.array_equal(acted(loaded), acted(trained))
    assert np.array_equal(acted(trained.with_circuit(str(tmp_path / "default.json"))), acted(trained))


def test_a_policy_file_carries_its_edited_table(tmp_path):
    spec = animal()
    rows = tuple(replace(row, weight=0.9) if row.key == "cross_V3f>flexor cross" else row for row in spec.synapses)
    edited = replace(spec, synapses=rows).without(["diag_In2"])
    untrained(NCAPPolicy(command=0.8, circuit=edited)).save(tmp_path / "mine.safetensors")
    found = load(tmp_path / "mine.safetensors")
    assert found.policy.circuit == edited
    assert np.array_equal(acted(found), acted(untrained(NCAPPolicy(command=0.8, circuit=edited))))
    assert not np.array_equal(acted(found), acted(untrained(NCAPPolicy(command=0.8))))


def test_weights_of_rows_that_another_table_does_not_have_are_left_behind_and_new_ones_are_untrained(tmp_path):
    trained = load("ncap-flat-walk")
    save_circuit(animal().trained_by(["AF", "RG", "PF"]), tmp_path / "more.json")
    more = trained.with_circuit(str(tmp_path / "more.json"))
    weights, before = more.policy.space.unpack(more.theta), trained.policy.space.unpack(trained.theta)
    assert more.parameters == 112 + 31
    for name, values in before.items():
        assert np.array_equal(weights[name], values)
    assert acted(more) == pytest.approx(acted(trained), abs=1e-12)


def test_the_papers_weights_go_into_the_default_table_where_it_has_their_rows_and_the_others_are_untrained():
    paper = load("paper-flat-walk")
    led = paper.with_circuit("default")
    assert (paper.parameters, led.parameters) == (92, 112)
    weights = dict(zip(led.policy.space.names, led.theta, strict=True))
    own = dict(zip(paper.policy.space.names, paper.theta, strict=True))
    thighs = {name for name in own if "thigh < flexor" in name or "thigh < extensor" in name}
    assert len(thighs) == 4  # half-centres do not drive thighs there, in either girdle
    own = {name: value for name, value in own.items() if name not in thighs}
    assert {name: weights[name] for name in own} == own
    initial = dict(zip(led.policy.space.names, led.policy.space.initial, strict=True))
    more = [
        name for name in weights if "fast_" in name or "late_" in name or "hip #" in name or name.startswith("PF: ")
    ]
    assert set(weights) - set(own) == set(more)
    assert [weights[name] for name in more] == [initial[name] for name in more]
