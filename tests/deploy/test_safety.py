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
SLEW, TORQUE, BRAKE = 21.0, 33.5, 5.0

NUMBERS = st.floats(-10, 10, width=32) | st.floats(width=32)  # NaN and infinity are among them
TABLES = arrays(np.float64, (4, 3), elements=NUMBERS)
MILD = arrays(np.float64, (4, 3), elements=st.floats(-4, 4))


def check_torque(command, state):
    """No motor is asked for more than its limit, unless the brake alone is more: it only ever slows a joint down."""
    asked = command.kp * (command.position - state.joint_position) - command.kd * state.joint_velocity
    brake = BRAKE * np.abs(state.joint_velocity)
    assert (np.abs(asked) <= np.maximum(TORQUE, brake) * (1 + 1e-5)).all()


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
        assert safety.fault is None or command.is_damping
        if command.is_damping:
            assert (command.kd > 0).all()
            latched = latched or safety.fault is not None
            previous = None
            continue
        assert not latched, "a fault was forgotten"
        newest = received.state
        assert np.isfinite(command).all()
        assert (command.position >= LOW).all()
        assert (command.position <= HIGH).all()
        if previous is not None:
            assert (np.abs(command.position - previous) <= SLEW * (now - previous_at) + 1e-6).all()
        if safety.state is newest:
            check_torque(command, newest)
        assert (command.kp <= A1.kp).all()
        assert (command.kd <= A1.kd).all()
        assert (command.kd >= BRAKE).all()
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
    # the hip is 0.5 rad off at -2 rad/s: 60 * 0.5 + 10 * 2 = 50 N m asked, 33.5 given
    safety.watch(Received(a_state(joint_position=np.tile([-0.3, 0.7, -1.2], (4, 1))), 0.0), 0.0)
    safety.command(None, 0.0)
    now, target = 0.0, np.tile([0.2, 0.7, -1.2], (4, 1))
    for step in range(40):
        now += 0.002
        position, velocity = np.tile([-0.3, 0.7, -1.2], (4, 1)), np.tile([-2.0, 0, 0], (4, 1))
        state = a_state(tick=1002 + 2 * step, joint_position=position, joint_velocity=velocity)
        safety.watch(Received(state, now), now)
        command = safety.command(target, now)
    torque = command.kp * (command.position - position) - command.kd * velocity
    np.testing.assert_allclose(torque[:, 0], 33.5)
    np.testing.assert_allclose(command.kp[:, 0] / command.kd[:, 0], 6.0)


@pytest.mark.parametrize(
    ("offset", "speed", "kp", "torque"),
    [
        # 60 * 1 + 10 * 2 = 80 N m asked; with the brake of 5 left: 23.5 * 1 + 5 * 2 = 33.5
        (1.0, -2.0, 23.5, 33.5),
        # at 10 rad/s away from the target the brake alone gives 50 N m: nothing is left to hold with
        (0.5, -10.0, 0.0, 50.0),
        # an encoder that reads 1000 rad: the joint is still braked, and hardly pulled
        (-1000.0, 0.0, 0.0335, -33.5),
    ],
)
def test_a_joint_that_is_far_off_is_still_braked_as_in_damping(safety, a_state, offset, speed, kp, torque):
    now, target = standing(safety, a_state), np.tile([0.0, 0.7, -1.2], (4, 1))
    for step in range(30):  # until the target is reached
        now += 0.002
        safety.watch(Received(a_state(tick=1020 + 2 * step), now), now)
        safety.command(target, now)
    position, velocity = target.copy(), np.zeros((4, 3))
    position[0, 0], velocity[0, 0] = -offset, speed
    now += 0.002
    safety.watch(Received(a_state(tick=1080, joint_position=position, joint_velocity=velocity), now), now)
    command = safety.command(target, now)
    assert command.kd[0, 0] == BRAKE
    assert command.kp[0, 0] == pytest.approx(kp)
    assert command.kp[0, 0] * offset - command.kd[0, 0] * speed == pytest.approx(torque)


@pytest.mark.parametrize("step", [-1.0, -1e-9, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["watch", "command", "arrival"])
def test_a_clock_that_goes_back_or_is_none_is_a_fault(safety, a_state, step, where):
    now = standing(safety, a_state)
    later = now + step
    if where == "watch":
        safety.watch(Received(a_state(tick=1020), now), later)
    elif where == "arrival":  # a state from the future, or from no time at all
        if step < 0:
            return
        safety.watch(Received(a_state(tick=1020), later), now)
    command = safety.command(np.tile([0.5, 2.0, -2.5], (4, 1)), later if where == "command" else now)
    assert command.is_damping
    assert np.isfinite(command).all()
    assert safety.fault.kind == "clock"


@pytest.mark.parametrize(("margin", "bad"), [(0.29, False), (0.31, True), (1000.0, True)])
@pytest.mark.parametrize(
    ("joint", "limit"), [(0, 0.801), (1, 4.189), (2, -0.917), (0, -0.801), (1, -1.049), (2, -2.699)]
)
def test_impossible_joint_positions_are_a_fault_at_the_third_state(safety, a_state, margin, bad, joint, limit):
    now, up = standing(safety, a_state), limit in (0.801, 4.189, -0.917)
    position = a_state().joint_position
    position[1, joint] = limit + (margin if up else -margin)
    for step in range(3):
        assert safety.fault is None
        now += 0.002
        safety.watch(Received(a_state(tick=1020 + 2 * step, joint_position=position), now), now)
    assert (safety.fault is not None and safety.fault.kind == "position") == bad


EXTREMES = st.sampled_from([0.0, 1.0, -30.0, 1e3, -1e6, 1e18, -3.4e38, 3.4e38, np.nan, np.inf])
SENSORS = {name: np.shape(value) for name, value in State(
    0, np.zeros(4), np.zeros(3), np.zeros(3), np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 3)),
    np.zeros(4),
)._asdict().items() if name != "tick"}  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_extreme_numbers_in_any_sensor_give_bounded_commands_or_damping(data):
    """Any sensor may read anything for a while, beginning when the robot stands; the target may be anything, too."""
    name = data.draw(st.sampled_from(sorted(SENSORS)), "sensor")
    safety, good = Safety(A1, Limits(), tick_seconds=1e-3), np.array([1.0, 0.0, 0.0, 0.0])
    rest = np.zeros((4, 3))
    state = State(1000, good, rest[0], rest[0], A1.mid.copy(), rest, rest, rest + 30.0, np.full(4, 30.0))
    now, latched, previous = 0.0, False, None
    for step in range(8):
        now += 0.002
        new = state._replace(tick=1002 + 2 * step)
        target = A1.mid
        if step >= 3:
            value = getattr(new, name).copy()
            value[data.draw(st.sampled_from(list(np.ndindex(value.shape))))] = data.draw(EXTREMES)
            new = new._replace(**{name: value})
            target = data.draw(st.just(A1.mid) | arrays(np.float64, (4, 3), elements=EXTREMES))
        safety.watch(Received(new, now), now)
        command = decode_command(encode_command(safety.command(target, now)))
        assert np.isfinite(command).all()
        assert (command.kd >= BRAKE).all()
        assert (command.kd <= A1.kd).all()
        assert (command.kp >= 0).all()
        assert (command.kp <= A1.kp).all()
        if safety.fault is not None:
            assert command.is_damping
            latched = True
            continue
        assert not latched
        assert np.isfinite(target).all()
        assert all(np.isfinite(part).all() for part in new)
        assert (command.position >= LOW).all()
        assert (command.position <= HIGH).all()
        check_torque(command, new)
        if previous is not None:
            assert (np.abs(command.position - previous) <= SLEW * 0.002 + 1e-6).all()
        previous = command.position


@pytest.mark.parametrize("name", sorted(SENSORS))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_nan_and_infinity_in_every_field_are_a_fault_at_once(safety, a_state, name, value):
    # the SDK's module may hand over doubles: 1e200 is finite, but its square is not
    now = standing(safety, a_state)
    broken = np.array(getattr(a_state(), name))
    broken.flat[-1] = value
    safety.watch(Received(a_state(tick=1020, **{name: broken}), now + 0.002), now + 0.002)
    assert safety.fault.kind == "state is not a number"
    assert safety.command(A1.mid, now + 0.002).is_damping


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
