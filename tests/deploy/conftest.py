import numpy as np
import pytest

from ncap.deploy.messages import State


@pytest.fixture
def a_state():
    """Builds the state of a robot that stands still, with whatever is asked for changed."""

    def build(**changes) -> State:
        standing = State(
            tick=1000,
            quaternion=np.array([1.0, 0.0, 0.0, 0.0]),
            angular_velocity=np.zeros(3),
            acceleration=np.array([0.0, 0.0, 9.81]),
            joint_position=np.tile([0.0, 0.7, -1.2], (4, 1)),
            joint_velocity=np.zeros((4, 3)),
            torque=np.zeros((4, 3)),
            temperature=np.full((4, 3), 30.0),
            foot_force=np.full(4, 30.0),
        )
        return standing._replace(**changes)

    return build
