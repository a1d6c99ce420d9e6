from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncap.circuits.circuit import Circuit, CircuitState
from ncap.circuits.rhythm import rhythm_inputs
from ncap.errors import UserError
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import AFFERENTS, NCAPPolicy
from ncap.policies.storage import from_description

MIRROR = [1, 0, 3, 2]  # FL <-> FR, HL <-> HR


def random_observations(seed, steps, individuals):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, individuals, 4, 10))


def act(controller, observations, seeds):
    state, actions = controller.reset(seeds), []
    for observation in observations:
        state, action = controller.act(state, observation)
        actions.append(action)
    return np.array(actions)


def perturbed(policy, individuals, seed=0):
    noise = np.random.default_rng(seed).normal(0, 0.2, (individuals, policy.space.size))
    return policy.space.constrain(policy.space.initial + noise)


def test_parameter_counts_are_the_papers():
    assert NCAPPolicy(command=0.2).space.size == 92
    assert NCAPPolicy(command=0.2, copies=8).space.size == 708
    assert MLPPolicy().space.size == 79_372


def test_initial_weights_are_the_papers():
    weights = NCAPPolicy(command=0.2).space.unpack(NCAPPolicy(command=0.2).space.initial)
    flexor = dict(zip(AFFERENTS, weights["AF.fore"][0], strict=True))
    assert {name: value for name, value in flexor.items() if value} == {
        "thigh position+": 1, "calf torque-": -1, "hip torque+": -1, "thigh torque+": -1, "foot+": -1,
    }  # fmt: skip
    assert weights["PF.hind"].tolist() == [[-0.5, 0.3], [-0.2, 0.8]]  # rows thigh, calf; columns flexor, extensor
    assert weights["PF.hind.bias"].tolist() == [0, 0]


def test_compressed_policy_acts_exactly_as_the_expanded_one():
    wide, compact = NCAPPolicy(command=0.3, copies=8), NCAPPolicy(command=0.3)
    theta = perturbed(wide, 3)
    observations = random_observations(1, 60, 3)
    full = act(wide.bind(theta), observations, [0, 1, 2])
    small = act(compact.bind(wide.space.compress(theta)), observations, [0, 1, 2])
    assert small == pytest.approx(full, abs=1e-12)


def plain_ncap(policy, weights, start, observations):
    """One individual, leg by leg and number by number."""
    circuit = Circuit(policy.circuit.spec, dt=policy.circuit.dt)
    state, actions = start, []
    for observation in observations:
        flexors, extensors = np.zeros((1, 4)), np.zeros((1, 4))
        for leg in range(4):
            girdle = "fore" if leg < 2 else "hind"
            signals = [max(0.0, -x) for x in observation[leg]] + [max(0.0, x) for x in observation[leg]]
            flexors[0, leg] = sum(w * s for w, s in zip(weights[f"AF.{girdle}"][0], signals, strict=True))
            extensors[0, leg] = sum(w * s for w, s in zip(weights[f"AF.{girdle}"][1], signals, strict=True))
        for _ in range(policy.circuit.substeps):
            state = circuit.step(state, rhythm_inputs(np.array([policy.command]), flexors, extensors))
        outputs = dict(zip(circuit.neurons, circuit.outputs(state)[0], strict=True))
        action = np.zeros((4, 3))
        for leg, name in enumerate(("FL", "FR", "HL", "HR")):
            girdle = "fore" if leg < 2 else "hind"
            for joint in (0, 1):
                row, bias = weights[f"PF.{girdle}"][joint], weights[f"PF.{girdle}.bias"][joint]
                total = row[0] * outputs[f"flexor.{name}"] + row[1] * outputs[f"extensor.{name}"] + bias
                action[leg, joint + 1] = np.tanh(total)
        actions.append(action)
    return np.array(actions)


def test_a_plain_loop_agrees():
    policy = NCAPPolicy(command=0.4)
    theta = perturbed(policy, 2, seed=3)
    controller = policy.bind(theta)
    observations = random_observations(2, 50, 2)
    batched = act(controller, observations, [5, 6])
    for i in range(2):
        start = CircuitState(*(values[i : i + 1] for values in controller.reset([5, 6])))
        expected = plain_ncap(policy, policy.space.unpack(theta[i]), start, observations[:, i])
        assert batched[:, i] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.floats(0, 1))
def test_mirrored_observations_give_mirrored_actions(seed, command):
    policy = NCAPPolicy(command=command)
    controller = policy.bind(perturbed(policy, 1, seed))
    observations = random_observations(seed, 30, 1)
    state = controller.circuit.reset(np.random.default_rng(seed), 1)
    mirrored = state._replace(adaptation=state.adaptation[:, MIRROR])
    for observation in observations:
        state, action = controller.act(state, observation)
        mirrored, reflected = controller.act(mirrored, observation[:, MIRROR])
        assert reflected == pytest.approx(action[:, MIRROR], abs=1e-9)


def test_hips_are_held_and_actions_stay_in_range():
    policy = NCAPPolicy(command=1.0)
    actions = act(policy.bind(10 * perturbed(policy, 4)), random_observations(4, 40, 4), range(4))
    assert np.all(actions[..., 0] == 0)
    assert np.abs(actions).max() <= 1


def test_the_rhythm_starts_at_a_phase_that_belongs_to_the_episode():
    controller = NCAPPolicy(command=0.2).bind(np.tile(NCAPPolicy(command=0.2).space.initial, (3, 1)))
    start = controller.reset([4, 9, 4]).adaptation
    assert np.array_equal(start[0], start[2])
    assert not np.array_equal(start[0], start[1])


@pytest.mark.parametrize("command", [0.05, 0.5, 0.9])
def test_an_episode_begins_in_the_gait_with_all_legs_on_the_ground(command):
    policy = NCAPPolicy(command=command)
    state = policy.bind(np.tile(policy.space.initial, (40, 1))).reset(range(40))
    assert not state.active.any()
    circuit, onsets = Circuit(policy.circuit.spec, dt=policy.circuit.dt), np.full((40, 4), np.nan)
    for step in range(round(2.0 / circuit.dt)):
        swung, state = state.active, circuit.step(state, rhythm_inputs(np.full(40, command)))
        onsets[state.active & ~swung & np.isnan(onsets)] = step * circuit.dt
    # walk: legs lift one by one; trot: by diagonals; bound: hind legs together, forelegs together
    pairs = {0.05: [], 0.5: [(0, 3), (1, 2)], 0.9: [(0, 1), (2, 3)]}[command]
    together = np.array([[abs(start[i] - start[j]) < 0.08 for i in range(4) for j in range(i)] for start in onsets])
    expected = [(j, i) in pairs for i in range(4) for j in range(i)]
    assert (together == expected).all(axis=1).mean() > 0.95


def test_paces_blend_sets_of_weights():
    policy = NCAPPolicy(command=0.4)
    several = replace(policy, paces=(0.1, 0.5, 0.9))
    walk, trot, run = (perturbed(policy, 2) * factor for factor in (1.0, 0.8, 1.3))
    observations = random_observations(6, 20, 2)
    controller = several.bind(np.hstack([walk, trot, run]))
    assert several.space.size == 3 * 92
    for command, theta in (
        (0.0, walk),
        (0.1, walk),
        (0.2, 0.75 * walk + 0.25 * trot),
        (0.5, trot),
        (0.7, 0.5 * trot + 0.5 * run),
        (1.0, run),
    ):
        controller.command = np.full(2, command)
        expected = act(replace(policy, command=command).bind(theta), observations, [1, 2])
        assert np.abs(act(controller, observations, [1, 2]) - expected).max() < 1e-12
    controller.command = np.array([0.1, 1.0])  # every individual at its own
    ends = act(controller, observations, [1, 2])
    assert np.array_equal(ends[:, 0], act(replace(policy, command=0.1).bind(walk), observations, [1, 2])[:, 0])
    assert np.array_equal(ends[:, 1], act(replace(policy, command=1.0).bind(run), observations, [1, 2])[:, 1])


@pytest.mark.parametrize("paces", [(0.5, 0.5), (0.9, 0.1), (0.5, 1.1)])
def test_paces_must_rise_within_the_range_of_commands(paces):
    with pytest.raises(UserError, match=r"must rise|outside \[0, 1\]"):
        NCAPPolicy(command=0.4, paces=paces)


def test_without_feedback_observations_do_not_matter():
    policy = NCAPPolicy(command=0.4)
    controller = policy.bind(perturbed(policy, 2))
    controller.feedback = False
    quiet, loud = (act(controller, scale * random_observations(6, 20, 2), [1, 2]) for scale in (0.0, 1.0))
    assert np.array_equal(quiet, loud)


def test_without_its_share_the_circuit_leaves_the_robot_standing():
    policy = NCAPPolicy(command=0.4)
    controller = policy.bind(perturbed(policy, 2))
    controller.share = np.array([1.0, 0.0])
    actions = act(controller, random_observations(6, 20, 2), [1, 2])
    assert np.abs(actions[:, 0]).max() > 0.1
    assert not actions[:, 1].any()


def test_every_individual_starts_at_its_own_command():
    policy = NCAPPolicy(command=0.2)
    controller = policy.bind(np.tile(policy.space.initial, (3, 1)))
    controller.command = np.array([0.2, 0.9, 0.2])
    slow, fast, again = controller.reset([7, 7, 7]).adaptation
    assert np.array_equal(slow, again)
    assert not np.array_equal(slow, fast)


@pytest.mark.parametrize(("activation", "hidden"), [("relu", 2.2), ("tanh", np.tanh(2.2))])
def test_mlp_by_hand(activation, hidden):
    # one hidden unit: h = activation(2 x0 - 1), action0 = tanh(3 h + 0.5), all else 0; x0 = (0.9 - 0.1) / 0.5 = 1.6
    policy = MLPPolicy(hidden=(1,), mean=(0.1,) + (0.0,) * 39, std=(0.5,) + (1.0,) * 39, activation=activation)
    theta = np.zeros((1, policy.space.size))
    theta[0, 0], theta[0, 40], theta[0, 41], theta[0, 53] = 2.0, -1.0, 3.0, 0.5
    observation = np.zeros((1, 4, 10))
    observation[0, 0, 0] = 0.9
    _, action = policy.bind(theta).act(None, observation)
    assert action[0, 0, 0] == pytest.approx(np.tanh(3 * hidden + 0.5))
    assert np.all(action[0, 1:] == 0)


@pytest.mark.parametrize("policy", [NCAPPolicy(command=0.2), MLPPolicy(hidden=(16, 8))])
def test_an_individual_acts_the_same_alone_and_in_a_crowd_to_the_bit(policy):
    theta, observations = perturbed(policy, 9), random_observations(7, 20, 9)
    crowd = act(policy.bind(theta), observations, range(9))
    alone = act(policy.bind(theta[4:5]), observations[:, 4:5], [4])
    assert np.array_equal(alone[:, 0], crowd[:, 4])


def test_impossible_policies_are_refused():
    with pytest.raises(UserError, match=r"command 1.5 is outside \[0, 1\]"):
        NCAPPolicy(command=1.5)
    with pytest.raises(UserError, match="at least one unit"):
        MLPPolicy(hidden=(0,))
    with pytest.raises(UserError, match="unknown activation 'step'; valid: relu, tanh"):
        MLPPolicy(activation="step")


def test_a_description_from_before_the_activation_means_relu():
    old = {"kind": "mlp", "hidden": [4, 4], "mean": [0.0] * 40, "std": [1.0] * 40}
    assert from_description(old) == MLPPolicy(hidden=(4, 4), activation="relu")
