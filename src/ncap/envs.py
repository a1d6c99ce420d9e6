"""The tasks for Gymnasium: importing this module makes them known to it. Nothing heavy is imported until one is made.

    env = gymnasium.make("ncap.envs:ncap/FlatWalk-v0")

Gymnasium itself imports what stands before the colon; after `import ncap.envs` the plain ids work too.
"""

from typing import Final

import gymnasium

EPISODE_STEPS: Final = {
    "flat-walk": 500,
    "flat-run": 500,
    "bumpy-walk": 500,
    "bumpy-run": 500,
    "flat-drive": 667,
    "bumpy-drive": 667,
    "swim": 1000,
    "navigate": 1000,
}
"""Control steps of an episode of every task."""
IDS: Final = {name: f"ncap/{name.title().replace('-', '')}-v0" for name in EPISODE_STEPS}
"""Gymnasium's id of every task."""

for _task, _identifier in IDS.items():
    gymnasium.register(
        _identifier,
        entry_point="ncap.learn.gym_env:WalkingEnv",
        vector_entry_point="ncap.learn.gym_env:WalkingVectorEnv",
        max_episode_steps=EPISODE_STEPS[_task],
        kwargs={"task": _task},
    )
