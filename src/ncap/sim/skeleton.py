"""Where the joints of a robot are in a pose: what a stick figure shows."""

import mujoco
import numpy as np
from numpy.typing import NDArray

from ncap.sim.world import World

Array = NDArray[np.float64]


def leg_lines(world: World, position: Array, quaternion: Array, joints: Array) -> Array:
    """(leg, point, 3) from the trunk over the joints to the foot, m, seen from the point under the trunk.

    position (3,) and quaternion (4,) of the trunk, joints (leg, 3) in rad.
    """
    model, data = world.model, mujoco.MjData(world.model)
    data.qpos[:3], data.qpos[3:7] = position, quaternion
    data.qpos[world.position_columns] = joints.reshape(-1)
    mujoco.mj_kinematics(model, data)
    lines = []
    for geom in world.foot_geoms:
        points, body = [data.geom_xpos[geom].copy()], int(model.geom_bodyid[geom])
        while body != world.trunk_id:
            points.append(data.xpos[body].copy())
            body = int(model.body_parentid[body])
        lines.append([*points, data.xpos[world.trunk_id].copy()][::-1])
    shortest = min(len(line) for line in lines)
    found: Array = np.array([line[-shortest:] for line in lines]) - np.array([*position[:2], 0.0])
    return found
