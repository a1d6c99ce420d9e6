"""The tasks for Gymnasium: importing this module makes them known to it. Nothing heavy is imported until one is made.

    env = gymnasium.make("ncap.envs:ncap/FlatWalk-v0")

Gymnasium itself imports what stands before the colon; after `import ncap.envs` the plain ids work too.
"""

from typing import Final

import gymnasium

IDS: Final = {
    name: f"ncap/{name.title().replace('-', '')}-v0" for name in ("flat-walk", "flat-run", "bumpy-walk", "bumpy-run")
}
"""Gymnasium's id of every task."""
EPISODE_STEPS: Final = 500
"""Control steps of an episode."""

for _task, _identifier in IDS.items():
    gymnasium.register(
        _identifier,
        entry_point="ncap.learn.gym_env:WalkingEnv",
        vector_entry_point="ncap.learn.gym_env:WalkingVectorEnv",
        max_episode_steps=EPISODE_STEPS,
        kwargs={"task": _task},
    )
