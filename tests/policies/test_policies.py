from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncap.analysis.gaits import circular_mean, measure_gait
from ncap.circuits.animal import AFFERENT_LIMIT, AFFERENTS, LED_PATTERN, animal
from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import EXTENSOR_STANCE, STARTS, rhythm_inputs, rhythm_starts
from ncap.circuits.spec import Input
from ncap.errors import UserError
from ncap.policies.controller import RandomPolicy
from ncap.policies.description import describe, policy_from
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy

MIRROR = [1, 0, 3, 2]  # FL <-> FR, HL <-> HR
SENSED = 10
"""What a leg feels itself; the posture of the trunk stands after it."""


def random_observations(seed, steps, individuals):
    """(steps, P, leg, sense), with the posture."""
    return np.random.default_rng(seed).uniform(-1, 1, (steps, individuals, 4, SENSED + 4))


def reflected(action):
    """Actions (P, leg, joint) in the mirror: legs change sides, and a hip that goes left then goes right."""
    return action[:, MIRROR] * [-1, 1, 1]


def act(controller, observations, seeds, command=None):
    state, actions = controller.reset(seeds, command), []
    for observation in observations:
        state, action = controller.act(state, observation, command)
        actions.append(action)
    return np.array(actions)


def perturbed(policy, individuals, seed=0):
    noise = np.random.default_rng(seed).normal(0, 0.2, (individuals, policy.space.size))
    return policy.space.constrain(policy.space.initial + noise)


def test_parameter_counts_of_the_papers_table_are_the_papers():
    for preset in ("paper", "released"):
        assert NCAPPolicy(circuit=animal(preset)).space.size == 92
        assert NCAPPolicy(circuit=animal(preset), copies=8).space.size == 708
    assert MLPPolicy().space.size == 79_372


def test_fast_pools_hips_and_vestibular_reflexes_add_20_weights_to_the_papers_92():
    # 2 pools drive each of 3 joints in 2 girdles, hips have a bias in each, and 6 reflexes belong to the whole body
    assert NCAPPolicy().space.size == 92 + 2 * 3 * 2 + 2 + 6 == 112
    # biases have no copies: the paper's 88 weights and these 18 have 8 each
    assert NCAPPolicy(copies=8).space.size == 708 + 8 * (2 * 3 * 2 + 6) + 2 == 854


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_blocks_of_the_papers_weights_have_a_row_for_every_target_and_a_column_for_every_source(preset):
    blocks = [(block.name, block.initial.shape) for block in NCAPPolicy(circuit=animal(preset)).space.blocks]
    assert blocks == [
        ("AF.fore", (2, 20)), ("AF.hind", (2, 20)),
        ("PF.fore", (2, 2)), ("PF.fore.bias", (2,)), ("PF.hind", (2, 2)), ("PF.hind.bias", (2,)),
    ]  # fmt: skip


def test_blocks_of_the_default_circuit_have_a_list_for_each_girdle_and_one_of_reflexes_for_the_whole_body():
    blocks = NCAPPolicy().space.blocks
    assert [(block.name, block.initial.shape) for block in blocks] == [
        ("AF.fore", (2, 20)), ("AF.hind", (2, 20)), ("PF", (6,)),
        ("PF.fore", (10,)), ("PF.fore.bias", (3,)), ("PF.hind", (10,)), ("PF.hind.bias", (3,)),
    ]  # fmt: skip
    found = {name: value for block in blocks[2:4] for name, value in zip(block.labels[0], block.initial, strict=True)}
    assert found == {
        "hip < roll": 0, "hip < roll rate": -0.5, "calf < roll": 0, "calf < roll rate": 0,
        "calf < pitch": 0.3, "calf < pitch rate": 0,
        "thigh < late_flexor": -0.3, "thigh < late_extensor": 0.25,
        "thigh < fast_late_flexor": -1.2, "thigh < fast_late_extensor": 1.2,
        "calf < flexor": -0.8, "calf < extensor": 1.1, "calf < fast_flexor": -0.4, "calf < fast_extensor": 0.4,
        "hip < fast_flexor": 0, "hip < fast_extensor": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stages", "sizes"),
    [
        (["RG"], {"RG": 22, "RG.bias": 9}),  # 20 synapses among 9 populations, and 2 from the afferent sums
        (["BC"], {"BC": 6}),  # freq and sync have 3 synapses each
        (["AF"], {"AF.fore": 40, "AF.hind": 40}),
        (["PF"], {"PF.fore": 4, "PF.fore.bias": 2, "PF.hind": 4, "PF.hind.bias": 2}),
    ],
)
def test_stages_can_be_trained_by_name(stages, sizes):
    space = NCAPPolicy(circuit=animal("paper").trained_by(stages)).space
    assert {block.name: block.size for block in space.blocks} == sizes
    # fast pools: 6 rows more to the joints of a girdle, and 4 more from freq; what they and late neurons take from
    # half-centres is fixed. Hips have biases, and the 6 vestibular reflexes belong to the pattern
    more = {"BC": 4, "PF.fore": 6, "PF.hind": 6, "PF.fore.bias": 1, "PF.hind.bias": 1}
    expected = {k: n + more.get(k, 0) for k, n in sizes.items()} | ({"PF": 6} if stages == ["PF"] else {})
    space = NCAPPolicy(circuit=animal().trained_by(stages)).space
    assert {block.name: block.size for block in space.blocks} == expected


@pytest.mark.parametrize(("preset", "pattern", "brainstem"), [("paper", 12, 6), ("default", 32, 10)])
def test_a_circuit_with_everything_trained_acts_the_same_before_training(preset, pattern, brainstem):
    spec = animal(preset)
    whole, usual = NCAPPolicy(circuit=spec.trained_by(["AF", "BC", "RG", "PF"])), NCAPPolicy(circuit=spec)
    # 80 afferent weights, those of the pattern, 22 + 9 of the rhythm, those of the brainstem
    assert whole.space.size == 80 + pattern + 22 + 9 + brainstem == {"paper": 129, "default": 153}[preset]
    observations = random_observations(3, 30, 2)
    trained, frozen = (
        act(policy.bind(np.tile(policy.space.initial, (2, 1))), observations, [1, 2]) for policy in (whole, usual)
    )
    assert trained == pytest.approx(frozen, abs=1e-12)


def test_initial_weights_of_the_papers_table_are_the_papers():
    space = NCAPPolicy(circuit=animal("paper")).space
    weights = space.unpack(space.initial)
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


CALF = ("flexor", "extensor", "fast_flexor", "fast_extensor")
THIGH = ("late_flexor", "late_extensor", "fast_late_flexor", "fast_late_extensor")
HEARD = {
    "paper": {"thigh": CALF[:2], "calf": CALF[:2]},
    "default": {
        "hip": (*CALF[2:], "roll", "roll rate"),
        "thigh": THIGH,
        "calf": (*CALF, "roll", "roll rate", "pitch", "pitch rate"),
    },
}
"""What drives a joint."""
LOUD = {"flexor": 0.9, "extensor": 0.6}
"""What a half-centre must say for its pool to hear it at the command 0."""


def plain_ncap(policy, theta, start, observations, preset, limit):
    """One individual, leg by leg and number by number. A limit: that of what the afferents of a leg add up to."""
    circuit = Circuit(policy.circuit)  # the rhythm generator alone; it is tested on its own
    weights = dict(zip((name.removesuffix(" #0") for name in policy.space.names), theta, strict=True))
    state, actions = start, []
    for observation in observations:
        sums = {}
        for leg, name in enumerate(("FL", "FR", "HL", "HR")):
            girdle, own = "fore" if leg < 2 else "hind", observation[leg, :SENSED]
            signals = [max(0.0, -x) for x in own] + [max(0.0, x) for x in own]
            for half in ("flexor", "extensor"):
                row = [weights[f"AF.{girdle}: afferent_{half} < {afferent}"] for afferent in AFFERENTS]
                total = sum(w * s for w, s in zip(row, signals, strict=True))
                sums[f"afferent_{half}.{name}"] = limit * np.tanh(total / limit) if limit else total
        inputs = rhythm_inputs(circuit, np.array([policy.command]))
        for column, name in enumerate(circuit.inputs):
            if name in sums:
                inputs[0, column] = sums[name]
        for _ in range(12):  # circuit steps of 2.5 ms in a control step of 30 ms
            state = circuit.step(state, inputs)
        outputs = dict(zip(circuit.neurons, circuit.outputs(state)[0], strict=True))
        action = np.zeros((4, 3))
        for leg, name in enumerate(("FL", "FR", "HL", "HR")):
            girdle = "fore" if leg < 2 else "hind"
            known = dict(zip(("roll", "roll rate", "pitch", "pitch rate"), observation[leg, SENSED:], strict=True))
            for half in ("flexor", "extensor"):
                for source in (half, f"late_{half}") if preset == "default" else (half,):
                    known[source] = outputs[f"{source}.{name}"]
                    known[f"fast_{source}"] = max(0.0, known[source] - LOUD[half] * (1 - policy.command))
            for joint, sources in HEARD[preset].items():
                total = weights[f"PF.{girdle}.bias: {joint}"]
                for source in sources:
                    block = f"PF.{girdle}" if source in (*CALF, *THIGH) else "PF"
                    total += weights[f"{block}: {joint} < {source}"] * known[source]
                outwards = -1.0 if joint == "hip" and name[1] == "R" else 1.0
                action[leg, ("hip", "thigh", "calf").index(joint)] = outwards * np.tanh(total)
        actions.append(action)
    return np.array(actions)


@pytest.mark.parametrize(("preset", "limit"), [("paper", None), ("default", AFFERENT_LIMIT)])
def test_a_plain_loop_agrees(preset, limit):
    policy = NCAPPolicy(command=0.7, circuit=animal(preset))
    theta = perturbed(policy, 2, seed=3)
    controller = policy.bind(theta)
    observations = random_observations(2, 50, 2)
    batched = act(controller, observations, [5, 6])
    for i in range(2):
        start = controller.reset([5, 6]).map(lambda part, i=i: part[i : i + 1])
        expected = plain_ncap(policy, theta[i], start, observations[:, i], preset, limit)
        assert batched[:, i] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.floats(0, 1))
def test_mirrored_observations_give_mirrored_actions(seed, command):
    policy = NCAPPolicy(command=command)
    controller = policy.bind(perturbed(policy, 1, seed))
    observations = random_observations(seed, 30, 1)
    state = controller.circuit.reset(1, np.random.default_rng(seed))
    group, columns = controller.circuit.place_of("flexor")
    mirrored = controller.circuit.reset(1)
    mirrored.units[group][0][:, columns] = controller.circuit.state_of(state, "flexor")[0][:, MIRROR]
    for observation in observations:
        state, action = controller.act(state, observation)
        mirrored, other = controller.act(mirrored, observation[:, MIRROR])
        assert other == pytest.approx(reflected(action), abs=1e-9)


@pytest.mark.parametrize("command", [0.0, 0.3, 1.0])
def test_fast_pools_are_silent_at_command_0_and_follow_fully_at_command_1(command):
    policy = NCAPPolicy(command=command)
    controller, system = policy.bind(policy.space.initial[None]), policy.system
    state, weights = controller.reset([3]), policy.system.weights_from(policy.numbers(policy.space.initial[None]))
    heard = []
    for _ in range(40):  # more than a stride, without afferents and level
        state, board = system.step(state, np.zeros((1, 96)), np.full((1, 4), command), weights)
        now = {name: board[0, place] for name, place in system.index.items()}
        for leg in ("FL", "FR", "HL", "HR"):
            for joint, prefix in (("thigh", "late_"), ("calf", "")):
                drive = 0.0
                for half in ("flexor", "extensor"):
                    source = f"{prefix}{half}"
                    slow, fast = now[f"{source}.{leg}"], now[f"fast_{source}.{leg}"]
                    assert fast == pytest.approx(max(0.0, slow - LOUD[half] * (1 - command)), abs=1e-15)
                    assert command > 0 or fast < 0.1  # hardly any of them is so loud
                    drive += LED_PATTERN[joint, source] * slow + LED_PATTERN[joint, f"fast_{source}"] * fast
                    heard.append(slow)
                assert now[f"{joint}.{leg}"] == pytest.approx(np.tanh(drive), abs=1e-12)
    assert (np.max(np.reshape(heard, (-1, 4)), axis=0) > 0.45).all()  # everybody was active


def test_late_neurons_follow_their_half_centres_by_a_low_pass_filter():
    """The paper's leaky unit, (T_v / 4) dv/dt = x - v, with T_v = 0.25 s: after 62.5 ms it has gone 63 % of a step."""
    circuit = Circuit(animal())
    state, inputs = circuit.reset(1, np.random.default_rng(0)), rhythm_inputs(Circuit(animal()), np.array([0.2]))
    at = {name: i for i, name in enumerate(circuit.neurons)}
    seen = []
    for _ in range(800):  # 2 s
        state = circuit.step(state, inputs)
        seen.append(circuit.outputs(state)[0])
    outputs = np.array(seen)
    half, late = outputs[:, at["extensor.HL"]], outputs[:, at["late_extensor.HL"]]
    expected = np.zeros(800)
    for i in range(1, 800):  # backward Euler in steps of 2.5 ms; a synapse takes a step
        expected[i] = (expected[i - 1] + 0.04 * half[i - 1]) / 1.04
    assert np.abs(late[1:] - expected[1:])[400:].max() < 1e-9  # what was before the first step is forgotten
    assert half.max() > 0.45


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([1.0, 1e3, 1e9]))
def test_whatever_is_felt_the_afferents_never_drive_a_half_centre_by_more_than_their_limit(seed, scale):
    policy, rng = NCAPPolicy(), np.random.default_rng(seed)
    theta = policy.space.constrain(scale * rng.normal(size=(3, policy.space.size)))
    controller = policy.bind(theta)
    _, board = policy.system.step(
        controller.reset([0, 1, 2]),
        scale * rng.uniform(0, 1, (3, 96)),
        np.full((3, 4), 0.25),
        policy.system.weights_from(policy.numbers(theta)),
    )
    sums = board[:, [place for name, place in policy.system.index.items() if name.startswith("afferent_")]]
    assert sums.shape == (3, 8)
    assert np.abs(sums).max() <= AFFERENT_LIMIT
    assert scale == 1.0 or np.abs(sums).max() == pytest.approx(AFFERENT_LIMIT)  # far out it is reached


@pytest.mark.parametrize(("preset", "held"), [("paper", True), ("released", True), ("default", False)])
def test_hips_are_held_in_the_papers_tables_alone_and_actions_stay_in_range(preset, held):
    policy = NCAPPolicy(command=1.0, circuit=animal(preset))
    actions = act(policy.bind(10 * perturbed(policy, 4)), random_observations(4, 40, 4), range(4))
    assert np.all(actions[..., 0] == 0) == held
    assert np.abs(actions).max() <= 1


def test_the_motor_neuron_of_a_hip_moves_the_leg_outwards_on_either_side():
    policy = NCAPPolicy()
    theta = np.where(["bias: hip" in name for name in policy.space.names], 0.5, policy.space.initial)
    actions = act(policy.bind(theta[None]), np.zeros((5, 1, 4, SENSED)), [0])
    # a hip turns about the axis that points forwards: a leg that hangs down goes left when the angle is positive
    assert actions[:, 0, :, 0] == pytest.approx(np.tile(np.tanh(0.5) * np.array([1, -1, 1, -1]), (5, 1)), abs=1e-12)


def drives_of(posture):
    """(leg, joint) what a posture (leg, 4) adds to the drives of the motor neurons of the untrained circuit."""
    controller = NCAPPolicy().bind(NCAPPolicy().space.initial[None])
    start, felt = controller.reset([2]), np.zeros((1, 4, SENSED))
    level = controller.act(start, felt)[1]
    leaning = controller.act(start, np.concatenate((felt, posture[None]), axis=2))[1]
    return (np.arctanh(leaning) - np.arctanh(level))[0]


RIGHT, FRONT = np.array([-1.0, 1.0, -1.0, 1.0]), np.array([1.0, 1.0, -1.0, -1.0])
"""What the legs feel of a trunk whose right side, or whose front, is as low, or sinks as fast, as can be felt."""


@pytest.mark.parametrize(
    ("sense", "felt", "joint", "drive"),
    [
        # the right side falls: right hips go inwards and left ones outwards, which is to the left, the positive angle,
        # for all: the feet stay, so the trunk is turned back (tests/test_rollouts.py)
        (1, RIGHT, 0, [0.5, 0.5, 0.5, 0.5]),
        (1, -RIGHT, 0, [-0.5, -0.5, -0.5, -0.5]),
        # the nose is low: fore knees are stretched, hind knees bent
        (2, FRONT, 2, [0.3, 0.3, -0.3, -0.3]),
        (2, -FRONT, 2, [-0.3, -0.3, 0.3, 0.3]),
        # what has no reflex before training
        (0, RIGHT, None, None),
        (3, FRONT, None, None),
    ],
)
def test_before_training_hips_turn_against_a_roll_and_knees_lift_the_girdle_that_has_sunk(sense, felt, joint, drive):
    posture, expected = np.zeros((4, 4)), np.zeros((4, 3))
    posture[:, sense] = felt
    if joint is not None:
        expected[:, joint] = drive
    assert drives_of(posture) == pytest.approx(expected, abs=1e-12)


def adaptation(controller, state):
    """(P, leg) of the flexors."""
    return controller.circuit.state_of(state, "flexor")[0]


def test_the_rhythm_starts_at_a_phase_that_belongs_to_the_episode():
    controller = NCAPPolicy(command=0.2).bind(np.tile(NCAPPolicy(command=0.2).space.initial, (3, 1)))
    start = adaptation(controller, controller.reset([4, 9, 4]))
    assert np.array_equal(start[0], start[2])
    assert not np.array_equal(start[0], start[1])


def swings_from(command, seconds):
    """(starts, T, leg) whether flexors of the default circuit are active, and stance, on from all of its starts."""
    circuit = Circuit(animal())
    state, inputs = rhythm_starts(animal(), (command,) * 4), rhythm_inputs(circuit, np.full(STARTS, command))
    swings, stance = [], []
    for _ in range(round(seconds / circuit.dt)):
        swings.append(circuit.state_of(state, "flexor")[1])
        stance.append(circuit.outputs(state)[:, circuit.columns("extensor")])
        state = circuit.step(state, inputs)
    return np.stack(swings, 1), np.stack(stance, 1), circuit.dt


@pytest.mark.parametrize(("command", "gait"), [(0.2, "walk"), (0.5, "trot"), (0.95, "bound")])
def test_episodes_begin_in_the_gait_at_phases_spread_over_the_whole_stride(command, gait):
    swings, stance, dt = swings_from(command, 4.0)
    gaits = [measure_gait(one, dt, EXTENSOR_STANCE) for one in stance]
    assert np.mean([one.label == gait for one in gaits]) > 0.95
    period = 1 / np.mean([one.frequency_hz for one in gaits]) / dt
    for leg in range(4):
        begins = ~swings[:, :-1, leg] & swings[:, 1:, leg]  # the swing is the leg's phase 0
        phases = (-begins.argmax(axis=1) / period) % 1.0
        # of 64 uniform phases, R exceeds 0.35 once in exp(64 · 0.35²) = 2500, and an eighth of the stride has none of
        # them once in 1 / (8 · (7/8)^64) = 640
        assert circular_mean(phases)[1] < 0.35
        assert len(set((8 * phases).astype(int))) == 8


def test_episodes_of_different_seeds_begin_at_different_phases():
    policy = NCAPPolicy(command=0.5)
    starts = adaptation(
        policy.bind(policy.space.initial[None]), policy.bind(policy.space.initial[None]).reset(range(200))
    )
    # 200 draws of 64 starts leave out 64 · (63/64)^200 = 2.7 of them
    assert 58 <= len(np.unique(starts, axis=0)) <= 64


def test_without_afferents_and_vestibular_reflexes_observations_do_not_matter():
    policy = NCAPPolicy(command=0.4)
    cut, theta = policy.without(["afferents", "vestibular"], perturbed(policy, 1)[0])
    controller = cut.bind(np.tile(theta, (2, 1)))
    quiet, loud = (act(controller, scale * random_observations(6, 20, 2), [1, 2]) for scale in (0.0, 1.0))
    assert np.array_equal(quiet, loud)
    # and it does what the whole circuit does when it feels nothing: every afferent starts at 0
    whole = policy.bind(np.tile(perturbed(policy, 1)[0], (2, 1)))
    assert np.array_equal(quiet, act(whole, np.zeros((20, 2, 4, SENSED)), [1, 2]))


def test_without_vestibular_reflexes_the_posture_alone_does_not_matter():
    policy, observations = NCAPPolicy(command=0.4), random_observations(6, 20, 2)
    theta = perturbed(policy, 1)[0]
    cut, left = policy.without(["vestibular"], theta)
    assert cut.space.size == 112 - 6
    level = observations.copy()
    level[..., SENSED:] = 0.0
    expected = act(policy.bind(np.tile(theta, (2, 1))), level, [1, 2])
    for seen in (observations, level, observations[..., :SENSED]):
        assert np.array_equal(act(cut.bind(np.tile(left, (2, 1))), seen, [1, 2]), expected)
    assert np.abs(act(policy.bind(np.tile(theta, (2, 1))), observations, [1, 2]) - expected).max() > 0.1
    assert (
        np.abs(act(cut.bind(np.tile(left, (2, 1))), 0 * observations, [1, 2]) - expected).max() > 0.1
    )  # legs still do


def test_an_observation_without_posture_acts_as_that_of_a_level_trunk_and_networks_leave_the_posture_out():
    policy, network = NCAPPolicy(command=0.4), MLPPolicy(hidden=(4,))
    observations = random_observations(12, 5, 2)
    alone = observations[..., :SENSED]
    level = np.concatenate((alone, np.zeros((5, 2, 4, 4))), axis=-1)
    for chosen, same in ((network, observations), (NCAPPolicy(circuit=animal("paper")), observations), (policy, level)):
        controller = chosen.bind(perturbed(chosen, 2))
        expected = act(controller, same, [1, 2])
        for seen in (alone, alone.reshape(5, 2, 40), same.reshape(5, 2, 56)):
            assert np.array_equal(act(controller, seen, [1, 2]), expected)
    assert np.abs(act(controller, observations, [1, 2]) - expected).max() > 0.1  # of the last, whose posture counts


def test_a_table_that_asks_for_a_sense_that_no_body_has_is_told_of_the_posture_too():
    wrong = replace(animal("paper"), inputs=(*animal("paper").inputs, Input(name="yaw rate")))
    with pytest.raises(
        UserError, match=r"input yaw rate: .* no such sense; valid: .*, foot\+, roll, roll rate, pitch, "
    ):
        NCAPPolicy(circuit=wrong)


def test_every_individual_starts_at_its_own_command():
    policy = NCAPPolicy(command=0.2)
    controller = policy.bind(np.tile(policy.space.initial, (3, 1)))
    slow, fast, again = adaptation(controller, controller.reset([7, 7, 7], np.array([0.2, 0.9, 0.2])))
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


@pytest.mark.parametrize(
    "policy",
    [
        NCAPPolicy(command=0.2),
        NCAPPolicy(command=0.2, circuit=animal().trained_by(["AF", "BC", "RG", "PF"])),  # a rhythm of its own for each
        MLPPolicy(hidden=(16, 8)),
    ],
    ids=["ncap", "ncap, all trained", "mlp"],
)
def test_an_individual_acts_the_same_alone_and_in_a_crowd_to_the_bit(policy):
    theta, observations = perturbed(policy, 9), random_observations(7, 20, 9)
    crowd = act(policy.bind(theta), observations, range(9))
    alone = act(policy.bind(theta[4:5]), observations[:, 4:5], [4])
    assert np.array_equal(alone[:, 0], crowd[:, 4])


def test_a_command_can_be_given_by_name_and_by_side():
    policy = NCAPPolicy(command=0.2)
    controller, observations = policy.bind(np.tile(policy.space.initial, (1, 1))), random_observations(8, 60, 1)
    usual = act(controller, observations, [3])
    named = {"freq.L": 0.2, "freq.R": 0.2, "sync": 0.2}
    for same in (0.2, {"c": 0.2}, named, np.array([0.2]), {"freq": np.array([0.2])}):
        assert np.array_equal(act(controller, observations, [3], same), usual)
    left = act(controller, observations, [3], {"freq.L": 0.9})
    everywhere = act(controller, observations, [3], 0.9)
    assert not np.array_equal(left, usual)
    assert not np.array_equal(left, everywhere)
    # a stronger drive of the left flexors alone is, in the mirror, a stronger drive of the right ones alone
    assert not np.array_equal(left, act(controller, observations, [3], {"freq.R": 0.9}))


def test_one_sided_commands_mirror_each_other():
    policy = NCAPPolicy(command=0.4)
    controller = policy.bind(perturbed(policy, 1))
    state = controller.circuit.reset(1)
    mirrored = controller.circuit.reset(1)  # at rest both are the same in the mirror
    for observation in random_observations(9, 60, 1):
        state, action = controller.act(state, observation, {"freq.L": 0.8})
        mirrored, other = controller.act(mirrored, observation[:, MIRROR], {"freq.R": 0.8})
        assert other == pytest.approx(reflected(action), abs=1e-9)


def test_every_individual_can_have_a_command_of_its_own():
    policy = NCAPPolicy(command=0.2)
    theta, observations = perturbed(policy, 3), random_observations(10, 40, 3)
    together = act(policy.bind(theta), observations, [1, 2, 3], {"freq.L": np.array([0.1, 0.5, 0.9]), "c": 0.3})
    for i, command in enumerate((0.1, 0.5, 0.9)):
        alone = act(policy.bind(theta[i : i + 1]), observations[:, i : i + 1], [i + 1], {"freq.L": command, "c": 0.3})
        assert np.array_equal(together[:, i], alone[:, 0])


def test_unknown_and_impossible_commands_are_named():
    policy = NCAPPolicy(command=0.2)
    controller = policy.bind(np.tile(policy.space.initial, (2, 1)))
    valid = r"valid: c, freq, sync, freq\.L, freq\.R, sync\.L, sync\.R"
    for call in (controller.reset, lambda seeds, c: controller.act(controller.reset(seeds), np.zeros((2, 4, 10)), c)):
        with pytest.raises(UserError, match=f"unknown command 'turn'; {valid}"):
            call([0, 1], {"turn": 0.1})
        with pytest.raises(UserError, match=r"brainstem command 1\.2 is outside \[0, 1\]"):
            call([0, 1], 1.2)
        with pytest.raises(UserError, match=r"outside \[0, 1\]"):
            call([0, 1], {"sync.R": np.array([0.2, np.nan])})
        with pytest.raises(UserError, match=r"one number for each of 2 individuals, not the shape \(3,\)"):
            call([0, 1], np.full(3, 0.2))
        with pytest.raises(UserError, match=r"numbers \(2, 4\), not the shape \(2, 3\)"):
            call([0, 1], np.full((2, 3), 0.2))


def test_nothing_that_a_controller_does_changes_it_or_another_of_the_same_policy():
    policy = NCAPPolicy(command=0.2)
    theta, observations = perturbed(policy, 2), random_observations(11, 20, 2)
    expected = act(policy.bind(theta), observations, [4, 5])
    one, other = policy.bind(theta), policy.bind(theta)
    state, kept = one.reset([4, 5]), one.reset([4, 5])
    act(other, -observations, [8, 9], {"freq.L": 1.0})
    actions = []
    for observation in observations:
        before = state.flat()
        one.act(state, -observation, 0.9)  # what might have been leaves no trace
        assert np.array_equal(state.flat(), before)
        state, action = one.act(state, observation)
        actions.append(action)
    assert np.array_equal(actions, expected)
    assert np.array_equal(one.reset([4, 5]).flat(), kept.flat())


def test_wrong_shapes_get_a_sentence():
    policy, network = NCAPPolicy(command=0.2), MLPPolicy(hidden=(4,))
    with pytest.raises(UserError, match=r"weights have the shape \(individuals, 112\), not \(112,\)"):
        policy.bind(policy.space.initial)
    with pytest.raises(UserError, match=r"weights have the shape \(individuals, 224\), not \(1, 112\)"):
        network.bind(policy.space.initial[None])  # 40 · 4 + 4 + 4 · 12 + 12
    sizes = {policy: "40 numbers, or 56 with the posture of the trunk", network: "40 numbers"}
    for chosen, said in sizes.items():
        controller = chosen.bind(chosen.space.initial[None])
        for senses in (9, 11, 15):
            with pytest.raises(UserError, match=f"an observation has {said}, not {4 * senses}"):
                controller.act(controller.reset([0]), np.zeros((1, 4, senses)))


def test_impossible_policies_are_refused():
    with pytest.raises(UserError, match=r"command 1.5 is outside \[0, 1\]"):
        NCAPPolicy(command=1.5)
    with pytest.raises(UserError, match="at least one unit"):
        MLPPolicy(hidden=(0,))
    with pytest.raises(UserError, match="unknown activation 'step'; valid: relu, tanh"):
        MLPPolicy(activation="step")


@pytest.mark.parametrize(("preset", "circuit"), [("default", "paper"), ("released", "released")])
def test_a_description_from_before_tables_has_the_circuit_that_its_preset_meant_then(preset, circuit):
    old = {"kind": "ncap", "command": 0.2, "preset": preset, "copies": 8}
    found = policy_from(old)
    assert found == NCAPPolicy(command=0.2, circuit=animal(circuit), copies=8)
    assert found.space.size == 708


def test_a_description_from_before_the_activation_means_relu():
    old = {"kind": "mlp", "hidden": [4, 4], "mean": [0.0] * 40, "std": [1.0] * 40}
    assert policy_from(old) == MLPPolicy(hidden=(4, 4), mean=(0.0,) * 40, std=(1.0,) * 40, activation="relu")


def test_a_description_may_name_no_paces_but_not_some():
    data = describe(NCAPPolicy(command=0.3))
    assert "paces" not in data
    assert policy_from(data | {"paces": []}) == NCAPPolicy(command=0.3)
    with pytest.raises(
        UserError, match=r"mine: paces are \[0\.1, 0\.9\], but a circuit has one set of weights for all commands"
    ):
        policy_from(data | {"paces": [0.1, 0.9]}, "mine")


POLICIES = [
    NCAPPolicy(command=0.2),
    NCAPPolicy(command=0.2, circuit=animal("paper")),
    MLPPolicy(hidden=(4,)),
    RandomPolicy(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=["ncap", "paper", "mlp", "random"])
def test_lists_and_single_precision_act_as_arrays_of_double_precision_do(policy):
    theta = np.round(perturbed(policy, 2), 2).astype(np.float32)  # the same numbers in both precisions
    observation = np.linspace(-1, 1, 80).reshape(2, 4, 10).astype(np.float32)

    def action(weights, seen, seeds):
        controller = policy.bind(weights)
        return controller.act(controller.reset(seeds), seen)[1]

    expected = action(theta.astype(np.float64), observation.astype(np.float64), [1, 2])
    assert expected.dtype == np.float64
    for weights in (theta, theta.tolist()):
        for seen in (observation, observation.tolist(), observation.reshape(2, 40)):
            assert np.array_equal(action(weights, seen, np.array([1, 2])), expected)


WRONG_NUMBERS = {
    "none": (lambda a: None, "is made of numbers, not of NoneType"),
    "text": (lambda a: "abc", "is made of numbers, not of 'abc'"),
    "numbers as text": (lambda a: a.astype(str), "is made of numbers, not of ndarray"),
    "complex": (lambda a: a.astype(complex), "is made of numbers, not of ndarray"),
    "ragged": (lambda a: [[0.0], [0.0, 0.0]], "is made of numbers, not of list"),
    "NaN": (lambda a: np.where(a == a.flat[0], np.nan, a), "has numbers that are not finite"),
    "infinity": (lambda a: np.where(a == a.flat[0], -np.inf, a), "has numbers that are not finite"),
}


@pytest.mark.parametrize("policy", POLICIES[:3], ids=["ncap", "paper", "mlp"])
@pytest.mark.parametrize(("spoil", "complaint"), WRONG_NUMBERS.values(), ids=WRONG_NUMBERS)
def test_wrong_weights_and_observations_get_a_sentence(policy, spoil, complaint):
    theta = perturbed(policy, 2)
    with pytest.raises(UserError, match=f"a set of weights {complaint}"):
        policy.bind(spoil(theta))
    controller = policy.bind(theta)
    with pytest.raises(UserError, match=f"an observation {complaint}"):
        controller.act(controller.reset([0, 1]), spoil(np.full((2, 4, 10), 0.5)))


@pytest.mark.parametrize("policy", POLICIES, ids=["ncap", "paper", "mlp", "random"])
def test_weights_and_observations_of_another_number_of_individuals_get_a_sentence(policy):
    controller = policy.bind(perturbed(policy, 2))
    with pytest.raises(UserError, match=r"weights have the shape \(individuals, \d+\), not \(0, \d+\)"):
        policy.bind(perturbed(policy, 2)[:0])
    if policy.space.size:
        with pytest.raises(UserError, match="weights for 2 individuals, but observations of 3"):
            controller.act(controller.reset([0, 1]), np.zeros((3, 4, 10)))
    if isinstance(policy, NCAPPolicy):
        with pytest.raises(UserError, match="weights for 2 individuals, but seeds of 3"):
            controller.reset([0, 1, 2])
    if not isinstance(policy, MLPPolicy):
        other = policy.bind(perturbed(policy, 1)).reset([0])
        with pytest.raises(UserError, match="the state is that of 1 individuals, but there are observations of 2"):
            controller.act(other, np.zeros((2, 4, 10)))
        with pytest.raises(UserError, match="call reset before act: a state is what it returns, not NoneType"):
            controller.act(None, np.zeros((2, 4, 10)))


@pytest.mark.parametrize("seeds", [None, 3, "01", [0.5, 1.0], ["0", "1"], {0, 1}, np.zeros(2), [None, 0], [-1, 0], []])
def test_seeds_that_are_none_get_a_sentence(seeds):
    for policy in (POLICIES[0], RandomPolicy()):
        controller = policy.bind(perturbed(policy, 2))
        with pytest.raises(UserError, match=r"seeds are whole numbers|number from 0 on, not -1|seeds is empty"):
            controller.reset(seeds)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("fast", "is made of numbers, not of 'fast'"),
        ([0.1, "x"], "is made of numbers, not of list"),
        ({"c": None}, "is made of numbers, not of NoneType"),
        ({"freq.L": "fast"}, "is made of numbers, not of 'fast'"),
        ({3: 0.5}, "unknown command '3'; valid: c"),
        (np.nan, r"command nan is outside \[0, 1\]"),
        (np.inf, r"command inf is outside \[0, 1\]"),
        (np.full((2, 4), 1.5), r"command 1.5 is outside \[0, 1\]"),
        (np.full((2, 4), np.nan), r"command nan is outside \[0, 1\]"),
        (np.zeros((2, 4, 1)), r"not the shape \(2, 4, 1\)"),
    ],
)
def test_commands_that_are_none_get_a_sentence(command, complaint):
    controller = POLICIES[0].bind(perturbed(POLICIES[0], 2))
    with pytest.raises(UserError, match=complaint):
        controller.reset([0, 1], command)
    with pytest.raises(UserError, match=complaint):
        controller.act(controller.reset([0, 1]), np.zeros((2, 4, 10)), command)


def test_commands_may_be_lists_and_of_single_precision():
    controller, observations = POLICIES[0].bind(perturbed(POLICIES[0], 2)), random_observations(3, 5, 2)
    expected = act(controller, observations, [1, 2], np.array([0.25, 0.75]))  # both are exact in single precision
    for command in ([0.25, 0.75], (0.25, 0.75), np.array([0.25, 0.75], np.float32), {"c": [0.25, 0.75]}):
        assert np.array_equal(act(controller, observations, [1, 2], command), expected)


@pytest.mark.parametrize("words", [{"command": "x"}, {"command": None}, {"command": [0.1, 0.2]}, {"circuit": None}])
def test_policies_of_the_wrong_kind_are_refused(words):
    with pytest.raises(UserError, match=r"is made of numbers|is one number|is a table \(CircuitSpec\), not NoneType"):
        NCAPPolicy(**words)
