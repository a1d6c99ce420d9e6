"""The twin is the simulated A1 behind the robot's messages, and differs from it exactly as asked."""

import mujoco
import numpy as np
import pytest

from ncap.deploy import dds_messages, messages
from ncap.deploy.gap import Channel, Gap
from ncap.deploy.link import TwinLink
from ncap.deploy.messages import Command, decode_state
from ncap.deploy.twin import FAULTS, Twin
from ncap.errors import UserError
from ncap.sim.a1 import A1

WIRES = {"a1": messages.WIRE, "go2": dds_messages.WIRE}
"""Kinds of messages, by the robot that has them."""
in_every_kind_of_messages = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


def hold(position, kp=60.0, kd=10.0, wire=messages.WIRE) -> bytes:
    return wire.encode_command(Command(np.asarray(position, float), np.full((4, 3), kp), np.full((4, 3), kd)))


def stand(twin: Twin, seconds: float = 1.5) -> None:
    """Slowly up from the belly, by hand."""
    start, begin = twin.truth().joint_position.copy(), twin.time
    while twin.time < begin + seconds + 0.5:
        share = min(1.0, (twin.time - begin) / seconds)
        twin.send(hold(start + share * (A1.mid - start)))
        twin.advance(twin.time + 0.002)


def test_at_first_it_lies_still_on_its_belly():
    twin = Twin()
    twin.advance(0.5)
    assert twin.truth().trunk_touches
    assert np.abs(twin.truth().joint_velocity).max() < 0.05
    assert twin.truth().up[2] > 0.999


def test_states_come_500_times_a_second_in_order_and_say_what_is_true():
    twin = Twin()
    states = [decode_state(data) for data in twin.advance(0.1)]
    assert np.diff([state.tick for state in states]).tolist() == [2] * 49
    np.testing.assert_allclose(states[-1].joint_position, twin.truth().joint_position, atol=1e-6)
    np.testing.assert_allclose(states[-1].torque, twin.truth().torque, atol=1e-5)


def test_its_motors_follow_the_commanded_gains():
    # torque = kp (target - q) - kd dq, computed here from what the state before the step says
    twin = Twin()
    target = twin.truth().joint_position + 0.05
    twin.send(hold(target, kp=40.0, kd=3.0))
    twin.advance(0.003)
    before = twin.truth()
    twin.advance(0.004)
    expected = 40.0 * (target - before.joint_position) - 3.0 * before.joint_velocity
    np.testing.assert_allclose(twin.truth().torque, expected, atol=1e-5)


@pytest.mark.parametrize(("gap", "factor"), [(Gap(gains=0.5), 0.5), (Gap(strength=0.6), 0.6)])
def test_weak_gains_and_weak_motors_give_less_torque(gap, factor):
    torques = []
    for twin in (Twin(), Twin(gap)):
        twin.send(hold(twin.truth().joint_position + 0.1))
        twin.advance(0.001)
        torques.append(twin.truth().torque)
    np.testing.assert_allclose(torques[1], factor * torques[0], rtol=1e-5)


def test_motors_give_no_more_than_their_limit():
    twin = Twin(Gap(strength=0.5))
    twin.send(hold(np.full((4, 3), 3.0)))
    twin.advance(0.002)
    assert np.abs(twin.truth().torque).max() == pytest.approx(0.5 * 33.5)


def test_it_stands_when_told_to_and_brakes_by_itself_when_commands_stop():
    twin = Twin()
    stand(twin)
    assert twin.truth().position[2] == pytest.approx(0.336, abs=0.01)  # the A1 stands at 0.336 m
    assert twin.damped_at is None
    silent = twin.time
    twin.advance(silent + 3.0)
    assert twin.damped_at - silent == pytest.approx(0.022, abs=0.003)
    assert twin.truth().position[2] < 0.15


def test_a_heavier_trunk_is_heavier_and_friction_is_as_asked():
    twin = Twin(Gap(mass=1.5, friction=0.4))
    model = twin._model
    assert model.body_mass[twin.world.trunk_id] == pytest.approx(1.5 * 4.713)
    assert set(model.geom_friction[twin.world.foot_geoms, 0]) == {0.4}
    assert mujoco.mj_getTotalmass(model) == pytest.approx(12.4534 + 0.5 * 4.713)


def test_noise_bias_and_foot_offset_have_their_stated_size():
    twin = Twin(Gap(noise=1.0, bias=1.0, foot_force_offset=40.0), seed=3)
    plain = Twin(seed=3)
    noisy = [decode_state(data) for data in twin.advance(2.0)]
    clean = [decode_state(data) for data in plain.advance(2.0)]
    error = np.array([n.joint_position - c.joint_position for n, c in zip(noisy, clean, strict=True)])
    assert error.std(axis=0).mean() == pytest.approx(0.01, rel=0.1)
    assert error.mean(axis=0).std() == pytest.approx(0.03, rel=0.5)  # twelve draws
    velocity = np.array([n.joint_velocity - c.joint_velocity for n, c in zip(noisy, clean, strict=True)])
    assert velocity.std() == pytest.approx(0.5, rel=0.1)
    force = np.array([n.foot_force - c.foot_force for n, c in zip(noisy, clean, strict=True)])
    assert force.mean() == pytest.approx(40.0, abs=0.5)
    assert force.std() == pytest.approx(3.0, rel=0.15)


def test_the_same_seed_gives_the_same_robot_and_another_seed_another():
    def states(seed):
        return Twin(Gap(noise=1.0, bias=1.0, loss=0.3, jitter=0.01), seed=seed).advance(0.2)

    assert states(1) == states(1)
    assert states(1) != states(2)


def test_a_channel_loses_doubles_and_delays_as_asked():
    channel = Channel(Gap(latency=0.01, jitter=0.02, loss=0.2, duplication=0.1), np.random.default_rng(0))
    for i in range(5000):
        channel.send(i.to_bytes(4, "big"), 0.001 * i)
    assert channel.due(0.0099) == []
    early = channel.due(1.0)
    assert max(int.from_bytes(data, "big") for data in early) <= 990  # nothing is faster than the latency
    arrived = early + channel.due(99.0)
    assert len(set(arrived)) == pytest.approx(4000, rel=0.03)
    assert len(arrived) == pytest.approx(4400, rel=0.03)
    assert arrived != sorted(arrived)  # jitter lets messages overtake each other


@in_every_kind_of_messages
def test_malformed_commands_are_dropped_and_counted(wire):
    twin = Twin(wire=wire)
    good = hold(A1.mid, wire=wire)
    for data in (b"", good[:-1], good + b"x", bytes(730), good[:50] + bytes([good[50] ^ 4]) + good[51:]):
        twin.send(data)
    twin.advance(0.01)
    assert (twin.malformed, twin.heard) == (5, 0)
    assert twin.command.is_damping


@in_every_kind_of_messages
@pytest.mark.parametrize("field", ["position", "kp", "kd"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_commands_that_are_not_finite_are_refused_and_counted(field, value, wire):
    twin = Twin(wire=wire)
    bad = Command(A1.mid.copy(), np.full((4, 3), 60.0), np.full((4, 3), 10.0))
    getattr(bad, field)[2, 1] = value
    twin.send(wire.encode_command(bad))
    twin.advance(0.01)
    assert (twin.refused, twin.heard) == (1, 0)
    assert twin.command.is_damping


@in_every_kind_of_messages
@pytest.mark.parametrize(("kp", "kd", "followed"), [(1e30, 10.0, (500.0, 10.0)), (60.0, -100.0, (60.0, 0.0))])
def test_gains_are_limited_and_counted(kp, kd, followed, wire):
    twin = Twin(wire=wire)
    twin.send(hold(A1.mid, kp=kp, kd=kd, wire=wire))
    twin.send(hold(A1.mid, wire=wire))
    twin.advance(0.001)
    assert (twin.limited, twin.heard) == (1, 2)
    twin.send(hold(A1.mid, kp=kp, kd=kd, wire=wire))
    twin.advance(0.5)
    assert (twin.command.kp[0, 0], twin.command.kd[0, 0]) == (followed[0], followed[1]) or twin.command.is_damping
    assert np.isfinite(twin.truth().joint_position).all()
    assert np.abs(twin.truth().torque).max() <= 33.5 + 1e-9


@in_every_kind_of_messages
def test_every_wild_command_leaves_a_finite_robot(wire):
    # 300 commands with every number anything that a float can be, one a millisecond
    twin, draw = Twin(wire=wire), np.random.default_rng(0)
    for step in range(300):
        numbers = draw.integers(0, 2**32, (3, 4, 3), dtype=np.uint32).view(np.float32)
        twin.send(wire.encode_command(Command(*numbers)))
        twin.send(hold(1e9 * draw.normal(size=(4, 3)), kp=10.0 ** draw.uniform(-3, 30), wire=wire))
        twin.advance(0.001 * (step + 1))
    assert twin.heard + twin.refused == 600
    assert twin.limited > 100
    assert np.isfinite(twin.truth().joint_position).all()


@in_every_kind_of_messages
@pytest.mark.parametrize("fault", ["short", "corrupt"])
def test_malformed_states_are_dropped_and_counted(fault, wire):
    link = TwinLink(Twin(wire=wire))
    link.wait_until(0.1)
    last = link.newest()
    link.twin.inject(fault)
    link.wait_until(0.2)
    assert link.malformed == 50
    assert link.newest() is last


def test_impossible_gaps_and_unknown_faults_are_refused():
    with pytest.raises(UserError, match=r"loss is a number in \[0, 1\], not 2"):
        Gap(loss=2.0)
    for mass in (-1.0, 0.0, np.nan, np.inf, 1e300):
        with pytest.raises(UserError, match=r"mass is a number in \[0.01, 100\], not "):
            Gap(mass=mass)
    for moment in (np.nan, np.inf, -1.0):
        with pytest.raises(UserError, match="fault silence comes at a time of 0 s or later, not at"):
            Twin(faults=[(moment, "silence")])
    with pytest.raises(UserError, match=f"unknown fault 'fire'; valid: {', '.join(FAULTS)}"):
        Twin().inject("fire")
