"""Nothing unsafe gets through, whatever states come and whatever is asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ncap.deploy.messages import State, decode_command, encode_command
from ncap.deploy.safety import Limits, Received, Safety
from ncap.sim.a1 import A1

# the SDK's limits, rad
LOW, HIGH = np.array([-0.802, -1.05, -2.7]), np.array([0.802, 4.19, -0.916])
SLEW, TORQUE = 21.0, 33.5

NUMBERS = st.floats(-10, 10, width=32) | st.floats(width=32)  # NaN and infinity are among them
TABLES = arrays(np.float64, (4, 3), elements=NUMBERS)
MILD = arrays(np.float64, (4, 3), elements=st.floats(-4, 4))


@st.composite
def moments(draw):
    """(seconds since the last tick, what the robot says or None, target)."""
    elapsed = draw(st.sampled_from([0.002] * 6 + [0.01] * 6 + [0.021, 0.06]))
    wild = draw(st.integers(0, 9)) == 0
    position = draw(TABLES) if wild else np.array(A1.mid) + 0.2 * draw(MILD)
    velocity = draw(TABLES) if wild else 4.0 * draw(MILD)
    quaternion = draw(arrays(np.float64, 4, elements=NUMBERS)) if wild else np.array([1.0, 0.0, 0.0, 0.0])
    temperature = np.full((4, 3), draw(st.sampled_from([30.0] * 20 + [55.0, 61.0])))
    ticks = draw(st.sampled_from([None] * 2 + [round(1000 * elapsed)] * 12 + [0, -3, 5000, -5000]))
    target = draw(draw(st.sampled_from([st.just(np.array(A1.mid))] * 6 + [MILD] * 4 + [TABLES, st.none()])))
    return elapsed, ticks, position, velocity, quaternion, temperature, target


@settings(max_examples=150, deadline=None)
@given(st.lists(moments(), min_size=1, max_size=25))
def test_no_sequence_of_states_and_targets_gets_an_unsafe_command_through(sequence):
    safety = Safety(A1, Limits(), tick_seconds=1e-3)
    now, tick, received, previous, latched = 10.0, 100_000, None, None, False
    previous_at = now
    for elapsed, ticks, position, velocity, quaternion, temperature, target in sequence:
        now += elapsed
        if ticks is not None:
            tick += ticks
            rest = np.zeros(3)
            state = State(tick, quaternion, rest, rest, position, velocity, np.zeros((4, 3)), temperature, np.zeros(4))
            received = Received(state, now)
        safety.watch(received, now)
        command = decode_command(encode_command(safety.command(target, now)))
        if command.is_damping:
            assert (command.kd > 0).all()
            latched = latched or target is not None
            previous = None
            continue
        assert not latched, "a fault was forgotten"
        newest = received.state
        assert np.isfinite(command).all()
        assert (command.position >= LOW).all()
        assert (command.position <= HIGH).all()
        if previous is not None:
            assert (np.abs(command.position - previous) <= SLEW * (now - previous_at) + 1e-6).all()
        asked = command.kp * (command.position - newest.joint_position) - command.kd * newest.joint_velocity
        if safety.state is newest:
            assert (np.abs(asked) <= TORQUE * (1 + 1e-5)).all()
        assert (command.kp <= A1.kp).all()
        assert (command.kd <= A1.kd).all()
        assert now - received.at <= 0.05
        assert now - previous_at <= 0.05 or previous is None
        assert newest is not safety.state or (newest.temperature < 60).all()
        assert np.isfinite(target).all()
        previous, previous_at = command.position, now


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.floats(0.0, 0.2))
def test_no_command_follows_from_a_state_older_than_50_ms(gaps, latency):
    """States come at gaps of 2 to 80 ms, each `latency` after it was true; commands are asked for every 2 ms."""
    safety = Safety(A1, Limits(), tick_seconds=1e-3)
    rest = np.zeros((4, 3))
    arrivals = set(np.cumsum([0, *gaps]).tolist())
    newest, received = 0, None
    for step in range(max(arrivals) + 1):
        now = 5.0 + latency + 0.002 * step
        if step in arrivals:
            newest = step
            state = State(2 * step, np.eye(4)[0], rest[0], rest[0], A1.mid, rest, rest, rest + 30.0, np.zeros(4))
            received = Received(state, now)
        safety.watch(received, now)
        if not safety.command(A1.mid, now).is_damping:
            assert 0.002 * (step - newest) <= 0.050
    # a gap of 21 ticks lets the state become 40 ms old, give or take a rounding, before the next one comes
    assert max(gaps) == 21 or (safety.fault is None) == (max(gaps) < 21)


def standing(safety: Safety, a_state, now: float = 0.0) -> float:
    """Bring a safety layer to where it lets commands through. Returns the time."""
    for step in range(10):
        now += 0.002
        safety.watch(Received(a_state(tick=1000 + 2 * step), now), now)
        command = safety.command(A1.mid, now)
    assert not command.is_damping
    return now


@pytest.fixture
def safety():
    return Safety(A1, Limits(), tick_seconds=1e-3)


def test_the_first_command_is_the_measured_pose_whatever_the_target(safety, a_state):
    safety.watch(Received(a_state(), 0.0), 0.0)
    command = safety.command(np.tile([0.5, 2.0, -2.5], (4, 1)), 0.0)
    np.testing.assert_array_equal(command.position, a_state().joint_position)


def test_a_target_within_all_limits_passes_unchanged(safety, a_state):
    now = standing(safety, a_state)
    for step in range(30):
        now += 0.002
        safety.watch(Received(a_state(tick=1020 + 2 * step), now), now)
        command = safety.command(A1.mid + 0.05, now)
    np.testing.assert_allclose(command.position, A1.mid + 0.05, atol=1e-12)
    assert (command.kp == A1.kp).all()
    assert (command.kd == A1.kd).all()


def test_gains_at_the_torque_limit_ask_for_what_a_saturated_motor_gives(safety, a_state):
    # the hip is 1 rad off at -2 rad/s: 60 * 1 + 10 * 2 = 80 N m asked, 33.5 given
    safety.watch(Received(a_state(joint_position=np.tile([-0.8, 0.7, -1.2], (4, 1))), 0.0), 0.0)
    safety.command(None, 0.0)
    now, target = 0.0, np.tile([0.2, 0.7, -1.2], (4, 1))
    for step in range(40):
        now += 0.002
        position, velocity = np.tile([-0.8, 0.7, -1.2], (4, 1)), np.tile([-2.0, 0, 0], (4, 1))
        state = a_state(tick=1002 + 2 * step, joint_position=position, joint_velocity=velocity)
        safety.watch(Received(state, now), now)
        command = safety.command(target, now)
    torque = command.kp * (command.position - position) - command.kd * velocity
    np.testing.assert_allclose(torque[:, 0], 33.5)
    np.testing.assert_allclose(command.kp[:, 0] / command.kd[:, 0], 6.0)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"joint_position": np.full((4, 3), np.nan)}, "state is not a number"),
        ({"foot_force": np.full(4, np.inf)}, "state is not a number"),
        ({"temperature": np.full((4, 3), 60.0)}, "temperature"),
        ({"quaternion": np.array([np.cos(np.deg2rad(23)), np.sin(np.deg2rad(23)), 0, 0])}, "tilt"),  # roll 46°
        ({"quaternion": np.array([np.cos(np.deg2rad(23)), 0, -np.sin(np.deg2rad(23)), 0])}, "tilt"),  # pitch -46°
        ({"quaternion": np.zeros(4)}, "no orientation"),
        ({"tick": 5000}, "jumping tick"),
        ({"tick": 2**32 - 2000}, "jumping tick"),  # three seconds back, around the counter's end
    ],
)
def test_a_single_bad_state_damps_at_once_and_for_good(safety, a_state, change, kind):
    now = standing(safety, a_state)
    safety.watch(Received(a_state(**{"tick": 1020} | change), now + 0.002), now + 0.002)
    assert safety.command(A1.mid, now + 0.002).is_damping
    assert safety.fault.kind == kind
    for step in range(100):
        now += 0.002
        safety.watch(Received(a_state(tick=1022 + 2 * step), now), now)
        assert safety.command(A1.mid, now).is_damping


@pytest.mark.parametrize("change", [{"joint_velocity": 26.0}, {"torque": 41.0}])
def test_noise_of_two_samples_is_forgiven_but_three_in_a_row_are_a_fault(safety, a_state, change):
    now, tick = standing(safety, a_state), 1018
    ((name, value),) = change.items()
    for bad in (True, True, False, True, True, True):
        now, tick = now + 0.002, tick + 2
        assert safety.fault is None
        state = a_state(tick=tick, **({name: np.full((4, 3), value)} if bad else {}))
        safety.watch(Received(state, now), now)
        safety.command(A1.mid, now)
    assert safety.fault.kind == ("velocity" if name == "joint_velocity" else "torque")


def test_heading_is_not_tilt(safety, a_state):
    now = standing(safety, a_state)
    for step, yaw in enumerate(np.linspace(0, 2 * np.pi, 50)):
        now += 0.002
        quaternion = np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)])
        safety.watch(Received(a_state(tick=1020 + 2 * step, quaternion=quaternion), now), now)
    assert safety.fault is None


def test_overtaken_and_doubled_messages_are_ignored(safety, a_state):
    now = standing(safety, a_state)
    for step, tick in enumerate((1024, 1022, 1022, 1024, 1026)):
        now += 0.002
        safety.watch(Received(a_state(tick=tick), now), now)
        assert safety.state.tick == max((1024, 1022, 1022, 1024, 1026)[: step + 1])
        assert not safety.command(A1.mid, now).is_damping


def test_clocks_that_drift_apart_by_a_ten_thousandth_do_not_age_states(a_state):
    # 4000 s are 0.4 s of drift, ten times the allowed age; a counter of µs wraps around once in that time
    for drift in (1e-4, -1e-4):
        safety = Safety(A1, Limits(), tick_seconds=1e-6)
        for now in np.arange(0.0, 4000.0, 0.2):
            safety.watch(Received(a_state(tick=int(1e6 * now * (1 - drift) + 1e9) % 2**32), now), now)
            assert safety.fault is None


def test_a_late_loop_is_forgiven_twice_a_second(safety, a_state):
    now, tick = standing(safety, a_state), 1018
    for late in (True, False, True, False, True):
        elapsed = 0.021 if late else 0.002
        now, tick = now + elapsed, tick + round(1000 * elapsed)
        safety.watch(Received(a_state(tick=tick), now), now)
        assert safety.fault is None
        command = safety.command(A1.mid, now)
    assert command.is_damping
    assert safety.fault.kind == "missed deadline"


def test_a_command_before_the_first_state_is_refused(safety):
    assert safety.command(A1.mid, 0.0).is_damping
    assert safety.fault.kind == "no state"


def test_a_warm_motor_is_only_a_warning(safety, a_state):
    now = standing(safety, a_state)
    safety.watch(Received(a_state(tick=1020, temperature=np.full((4, 3), 55.0)), now + 0.002), now + 0.002)
    assert safety.warm
    assert not safety.command(A1.mid, now + 0.002).is_damping
