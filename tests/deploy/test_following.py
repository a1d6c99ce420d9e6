"""A robot follows its commands or it does not; the torques that it reports tell, whatever the network's delay."""

import numpy as np
import pytest

from ncap.deploy.following import Following
from ncap.sim.a1 import A1


def targets(step: int):
    """(leg, 3) in rad at a tick: swings of 0.4 rad at 2 Hz about the standing pose, every joint in its own phase."""
    return A1.mid + 0.4 * np.sin(2 * np.pi * 2.0 * 0.002 * step + np.arange(12.0).reshape(4, 3))


def fly(a_state, gives, delay=0, noise=0.0, seconds=2.0):
    """Shares at every tick of a robot at rest in the standing pose, whose motors make `gives(asked)` of the torque
    that a target of some ticks ago asks for."""
    following, draw, shares = Following(A1, 33.5), np.random.default_rng(0), []
    for step in range(round(seconds / 0.002)):
        following.target = targets(step)
        asked = np.clip(60.0 * (targets(step - delay) - A1.mid), -33.5, 33.5)
        state = a_state(
            joint_position=A1.mid,
            joint_velocity=noise * 0.5 * draw.normal(size=(4, 3)),
            torque=gives(asked) + noise * draw.normal(size=(4, 3)),
        )
        shares.append(following.share(state, 0.002 * step))
    return np.array(shares)


@pytest.mark.parametrize("delay", [0, 5, 25, 60, 100, 140])
@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_the_share_is_what_the_motors_give_whatever_the_delay(a_state, delay, strength):
    shares = fly(a_state, lambda asked: strength * asked, delay)
    # blocks of 20 ms do not fit every delay: at 2 Hz half a block is 7°, of which the cosine is 0.99
    assert shares[500:].min() > 0.97 * strength
    assert shares[500:].max() < 1.01 * strength


@pytest.mark.parametrize("noise", [0.0, 1.0, 3.0])
def test_a_robot_that_hears_nothing_has_a_share_of_about_zero(a_state, noise):
    shares = fly(a_state, lambda asked: 0.0 * asked, noise=noise)
    assert np.abs(shares[500:]).max() < 0.1


@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_noise_does_not_make_a_robot_that_follows_look_deaf(a_state, noise):
    assert fly(a_state, lambda asked: asked, delay=60, noise=noise)[300:].min() > 0.6


def test_nothing_is_said_while_hardly_anything_is_asked_for(a_state):
    # a block takes 20 ms and seventeen of them must be known; at rest in the target nothing is asked for
    following = Following(A1, 33.5)
    assert following.share(a_state(), 0.0) == 1.0
    for step in range(1000):
        following.target = A1.mid
        assert following.share(a_state(joint_position=A1.mid), 0.002 * step) == 1.0
    assert (fly(a_state, lambda asked: 0.0 * asked)[:150] == 1.0).all()


def test_damping_begins_anew(a_state):
    following = Following(A1, 33.5)
    for step in range(1000):
        following.target = A1.mid + 0.4
        share = following.share(a_state(joint_position=A1.mid), 0.002 * step)
    assert share == 0.0
    following.restart()
    assert following.share(a_state(), 2.0) == 1.0
