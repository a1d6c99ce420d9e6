"""Is the fast physics good enough to train in? Trained circuits in both presets, and trainings in each tested in one.

Played: what policies do, how deep feet sink into the ground, and by how much a control step from the same state
differs. Trained: the same trainings in both presets, with everything that is reported played in the paper's.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.evaluation import evaluate, own_command
from ncap.experiments.library import Library, Scale
from ncap.report.tables import write_table
from ncap.rollouts import rollout
from ncap.rotations import rotation_of
from ncap.sim.simulation import Simulation
from ncap.tasks import PAPER_TASKS, TASKS, Task, build, drawn_variation
from ncap.trained import TrainedPolicy, load

Array = NDArray[np.float64]

COMPARED: Final = ("paper", "fast")
"""Physics presets: the one in which everything is reported, and the one to train in."""
TRAINED_ON: Final = ("flat-walk", "bumpy-run")
EPISODES_LOOKED_INTO: Final = 4
"""Episodes whose every state is looked into for how deep feet sink."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Play the shipped circuits, train what is missing, then write the tables of docs/design/reference-notes.md."""
    rows = []
    for name in (task for task in PAPER_TASKS if task in scale.tasks):
        player, task = load(f"ncap-{name}"), replace(TASKS[name], episode_seconds=scale.test_seconds)
        for preset in COMPARED:
            library.say(f"{player.name} in the physics {preset}")
            rows.append(_played(player, replace(task, physics=preset), scale.episodes, library.threads))
        rows[-1] |= step_error(player, task)
    write_table(out / "physics.csv", rows)
    trained = []
    for name in (task for task in TRAINED_ON if task in scale.tasks):
        for preset in COMPARED:
            own = library.within(f"physics/{preset}")
            places = own.train([replace(one, physics=preset) for one in scale.trainings(name, "ncap")])
            for seed, place in enumerate(places):
                found = library.evaluation(str(place), TASKS[name], scale.episodes)
                gait = found.walk
                trained.append(
                    {
                        "task": name,
                        "trained_in": preset,
                        "seed": seed,
                        "return": found.return_mean,
                        "falls": found.falls,
                        "episodes": found.episodes,
                        "gait": gait.label,
                        "share": gait.share,
                        "commanded_share": gait.commanded_share,
                        "rhythm_ratio": gait.rhythm_ratio,
                    }
                )
    write_table(out / "physics-training.csv", trained)


def _played(player: TrainedPolicy, task: Task, episodes: int, threads: int) -> dict[str, object]:
    found = evaluate(player, task, range(episodes), threads=threads)
    foot, trunk = sinking(player, task, range(EPISODES_LOOKED_INTO))
    return {
        "policy": player.name,
        "physics": task.physics,
        "return": found.return_mean,
        "falls": found.falls,
        "episodes": found.episodes,
        "speed": found.speed_mean,
        "gait": found.walk.label,
        "commanded_share": found.walk.commanded_share,
        "frequency_hz": found.walk.frequency_hz,
        "cost_of_transport": found.cost_of_transport,
        "foot_sinks_mm": 1e3 * foot,
        "trunk_sinks_mm": 1e3 * trunk,
    }


def sinking(player: TrainedPolicy, task: Task, seeds: Sequence[int]) -> tuple[float, float]:
    """(feet, trunk): how deep they are in the ground at the ends of control steps, m.

    Feet: the median over those that touch it. Trunk: the deepest.
    """
    world = build(task)
    found = [
        world.sinking(world.variant(drawn_variation(task, seed)), _states(player, task, seed)[0]) for seed in seeds
    ]
    return float(np.median([depth for feet, _ in found for depth in feet])), max(trunk for _, trunk in found)


def step_error(player: TrainedPolicy, task: Task) -> dict[str, float]:
    """How far the two presets are apart after one control step from the same states of a walk with the same targets.

    torque_error: root mean square difference of the motors' torques over that of the torques. position_error_mrad: of
    the joints' positions.
    """
    qpos, qvel, targets = _states(player, task, 0)
    everybody = np.arange(len(qpos) - 1)
    results = []
    for world in (build(replace(task, physics=preset)) for preset in COMPARED):
        simulation = Simulation(world, len(everybody), control_dt=task.control_dt, threads=1)
        model = world.variant(drawn_variation(task, 0))
        simulation.place(everybody, [model] * len(everybody), qpos[:-1], qvel[:-1])
        simulation.step(everybody, targets[1:])
        results.append(simulation.measure())
    paper, fast = results

    def rms(values: Array) -> float:
        return float(np.sqrt(np.mean(values**2)))

    return {
        "torque_error": rms(fast.torque - paper.torque) / rms(paper.torque),
        "position_error_mrad": 1e3 * rms(fast.joint_position - paper.joint_position),
    }


def _states(player: TrainedPolicy, task: Task, seed: int) -> tuple[Array, Array, Array]:
    """(qpos (T, nq), qvel (T, nv), joint targets (T, leg, 3)) at the ends of the control steps of an episode."""
    names = ("position", "quaternion", "joint_position", "joint_velocity", "velocity", "angular_velocity", "action")
    world = build(task)
    episode = rollout(task, player.controller(1), [seed], command=own_command(player, task), record=names)
    steps = int(episode.steps[0])
    signals = {name: values[0, :steps] for name, values in episode.signals.items()}
    qpos, qvel = np.zeros((steps, world.model.nq)), np.zeros((steps, world.model.nv))
    qpos[:, 0:3], qpos[:, 3:7] = signals["position"], signals["quaternion"]
    qpos[:, world.position_columns] = signals["joint_position"].reshape(steps, -1)
    qvel[:, 0:3] = np.einsum("tij,tj->ti", rotation_of(signals["quaternion"]), signals["velocity"])
    qvel[:, 3:6] = signals["angular_velocity"]
    qvel[:, world.velocity_columns] = signals["joint_velocity"].reshape(steps, -1)
    return qpos, qvel, task.robot.targets(signals["action"])
