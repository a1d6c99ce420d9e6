"""The swimmer's circuit: its numbers, and its responses beside a plain loop of the published formulas."""

import numpy as np
import pytest

from ncap.circuits.animal import animal, cut, find_circuit, knock_outs
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.swimmer import PACEMAKER, SWIMMERS, swimmer, usual_circuit
from ncap.circuits.tables import circuit_from, describe_circuit
from ncap.circuits.units import SumUnit
from ncap.errors import UserError
from ncap.plan import QUADRUPED, chain
from ncap.policies.ncap import NCAPPolicy

BEND = 0  # which of the five senses of a joint is its bend


def graded(x):
    return min(1.0, max(0.0, x))


def plain_loop(weights, bends, dorsal_phase, right=0.0, left=0.0, speed=1.0):
    """Torques of all joints by the formulas of Bhattasali and others (2022), one joint after the other."""
    torques = []
    for i in range(len(bends)):
        drive = {}
        for side, sign, phase, turn in (("d", 1, dorsal_phase, right), ("v", -1, 1 - dorsal_phase, left)):
            total = weights["speed"] * (1 - speed)
            if i == 0:
                total += weights["oscillator"] * phase + weights["turn"] * turn
            else:
                total += weights["proprioception"] * graded(sign * bends[i - 1])
            drive[side] = graded(total)
        muscle = {
            side: graded(weights["ipsilateral"] * drive[side] + weights["contralateral"] * drive[other])
            for side, other in (("d", "v"), ("v", "d"))
        }
        torques.append(muscle["d"] - muscle["v"])
    return torques


@pytest.mark.parametrize("joints", [2, 5, 12])
def test_the_circuit_does_what_the_formulas_say_at_every_joint_and_step(joints):
    rng = np.random.default_rng(joints)
    policy = NCAPPolicy(command=1.0, circuit=swimmer("swimmer-turning", chain(joints)))
    names = [name.removeprefix("PF: ").removesuffix(" #0") for name in policy.space.names]
    theta = policy.space.constrain(rng.uniform(-1.5, 1.5, policy.space.size))
    controller = policy.bind(theta[None])
    weights = dict(zip(names, theta.tolist(), strict=True))
    state = controller.reset([3])
    for _ in range(70):
        observation = rng.uniform(-1, 1, (1, joints, 5))
        right, left, speed = rng.uniform(0, 1, 3)
        said = {"right": right, "left": left, "speed": speed}
        state, board = controller.think(state, observation, said)
        dorsal_phase = float(board[0, controller.system.index["pacemaker.s1"]] > 0)
        expected = plain_loop(weights, observation[0, :, BEND].tolist(), dorsal_phase, right, left, speed)
        np.testing.assert_allclose(controller.action(board)[0, :, 0], expected, atol=1e-12)


def test_whatever_its_start_the_pacemaker_changes_every_30_control_steps():
    group, individuals = PACEMAKER.group([PACEMAKER], 0.03), 500
    state, outputs = group.start(individuals, np.random.default_rng(0)), []
    for _ in range(300):
        state, output = group.step(state, np.zeros((individuals, 1)))
        outputs.append(output[:, 0])
    active = np.array(outputs) > 0
    assert np.array(outputs)[active].min() >= 0.5  # so twice that is at least 1, where the head's neurons end
    for one in active.T:
        changes = np.flatnonzero(np.diff(one.astype(int)))
        assert set(np.diff(changes)) == {30}


def test_there_are_4_weights_or_6_or_one_for_each_of_30_connections_and_they_keep_their_signs():
    spaces = {name: NCAPPolicy(circuit=swimmer(name)).space for name in SWIMMERS}
    assert {name: space.size for name, space in spaces.items()} == dict(zip(SWIMMERS, (4, 6, 30), strict=True))
    joints = 5
    assert spaces["swimmer-unshared"].size == 2 * (joints - 1) + 2 + 4 * joints
    space = spaces["swimmer-turning"]
    named = dict(zip([name.split()[1] for name in space.names], space.initial.tolist(), strict=True))
    signs = {"proprioception": 1, "oscillator": 1, "ipsilateral": 1, "contralateral": -1, "turn": 1, "speed": -1}
    assert named == signs
    wrong = space.constrain(-space.initial)
    assert (wrong == 0).all()


def test_on_another_length_the_weights_stay_and_on_another_kind_of_body_it_is_refused():
    policy = NCAPPolicy(circuit=swimmer())
    theta = np.array([0.5, 0.6, 0.7, -0.8])
    longer, carried = policy.with_circuit(policy.circuit.on(chain(9)), theta)
    assert longer.circuit == swimmer("swimmer", chain(9))
    np.testing.assert_array_equal(carried, theta)
    assert policy.circuit.on(chain(5)) is policy.circuit
    with pytest.raises(UserError, match="a circuit for the body chain-5 does not fit the body quadruped"):
        policy.circuit.on(QUADRUPED)
    with pytest.raises(UserError, match="a circuit for the body quadruped does not fit the body chain-4"):
        animal().on(chain(4))


def test_tables_of_swimmers_are_found_by_name_and_survive_a_file():
    for name in SWIMMERS:
        assert circuit_from(describe_circuit(find_circuit(name))) == swimmer(name)
    assert usual_circuit(chain(3), steered=False) == "swimmer"
    assert usual_circuit(chain(3), steered=True) == "swimmer-turning"
    assert (usual_circuit(QUADRUPED, steered=False), usual_circuit(QUADRUPED, steered=True)) == ("default", "drive")
    with pytest.raises(UserError, match="unknown circuit of a swimmer 'eel'; valid: swimmer, "):
        swimmer("eel")


def test_knock_outs_by_name_take_all_their_rows_and_quadrupeds_keep_theirs():
    turning = swimmer("swimmer-turning")
    assert {"proprioception", "rhythm", "turning"} <= set(knock_outs(turning))
    assert "V0v" not in knock_outs(turning)
    assert "proprioception" not in knock_outs(animal())
    blind = cut(turning, ["proprioception"])
    gone = {row.key for row in turning.synapses} - {row.key for row in blind.synapses}
    assert gone == {"bend+>B_dorsal tailward", "bend->B_ventral tailward"}
    assert NCAPPolicy(circuit=blind).space.size == 5
    one_side = cut(turning, ["B_dorsal"])  # the other side keeps the weights that both shared
    assert NCAPPolicy(circuit=one_side).space.size == 6


def table(**changes):
    rows = [
        Synapse(source="tone", target=name, weight=0.5, sign=1, trainable=True, shared="both") for name in ("a", "b")
    ]
    rows[1] = Synapse(**{**{name: getattr(rows[1], name) for name in rows[1].__dataclass_fields__}, **changes})
    return CircuitSpec(
        tuple(Neuron(name=name, unit=SumUnit()) for name in ("a", "b")), tuple(rows), (Input(name="tone"),), chain(2)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"weight": 0.6},
            "synapse tone>b same: shares 'both' with synapse tone>a same, but its weight is 0.6, not 0.5",
        ),
        ({"sign": 0}, "but its sign is 0, not 1"),
        ({"trainable": False}, "but its trainable is False, not True"),
        ({"tied_by": "site"}, "but its tied_by is site, not body"),
    ],
)
def test_rows_that_share_a_weight_must_say_the_same_of_it(changes, message):
    assert len(table().entries) == 3  # one weight and two biases
    with pytest.raises(UserError, match=message):
        table(**changes)
