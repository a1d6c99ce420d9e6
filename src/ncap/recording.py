"""One episode kept to be looked at, with the robot, the ground and the circuit that it was played with.

`record` plays one, a robot's flight recorder writes one, replays and videos draw one. Shapes: T control steps, N
neurons of the rhythm generator, legs in the order of the body plan; SI units. The simulator is imported only where an
episode is played or a task looked up, because the machine beside a robot has none.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.spec import CircuitSpec
from ncap.circuits.tables import circuit_from, describe_circuit
from ncap.errors import UserError, unknown_name
from ncap.files import read_tensors, write_tensors
from ncap.policies.controller import Command, Controller
from ncap.policies.ncap import NCAPController, NCAPPolicy
from ncap.sim.robot import Robot, describe_robot, robot_from
from ncap.sim.terrain import Bumpy, Flat, Grid, Terrain
from ncap.trained import TrainedPolicy, load

if TYPE_CHECKING:
    from ncap.tasks import Task

Array = NDArray[np.float64]

_SIGNALS: Final = ("position", "quaternion", "joint_position", "foot_force", "velocity", "action")
_FACTS: Final = ("title", "task", "seed", "control_dt", "target_speed", "neuron_names")
_TERRAINS: Final = {"flat": Flat, "bumpy": Bumpy}
"""Terrains that are stored by their numbers; any other is stored by its heights."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedGround:
    """A terrain that is known by its heights alone, as they were in one episode."""

    grid: Grid
    """Where the height field lies."""
    points: NDArray[np.float32]
    """Ground height (rows, columns), m."""

    def heights(self, seed: int) -> Array:
        """The recorded heights (rows, columns) in m, whatever the seed."""
        return self.points.astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """Motion, footfalls and neurons of one episode, one row per control step."""

    title: str
    """Headline of replays and videos: policy and task."""
    task: str
    """Name of the task."""
    seed: int
    """Episode seed, from which a terrain draws its bumps."""
    control_dt: float
    """Control step, s."""
    position: Array
    """(T, 3) of the trunk, m."""
    quaternion: Array
    """(T, 4) of the trunk, w x y z."""
    joint_position: Array
    """(T, leg, joint) rad."""
    foot_force: Array
    """(T, leg) N."""
    velocity: Array
    """(T, 3) of the trunk in its own frame, m/s."""
    action: Array
    """(T, leg, joint) in [-1, 1]."""
    neurons: Array
    """(T, N) activity in [0, 1]; N = 0 for a policy without neurons."""
    neuron_names: tuple[str, ...] = ()
    """Names of the columns of `neurons`: flexor.FL, …"""
    robot: Robot | None = None
    """The robot, in a file with the text of its model; None in recordings of the first version: an A1."""
    terrain: Terrain | None = None
    """The ground; None in recordings of the first version: the task's own."""
    target_speed: float | None = None
    """Forward speed that was rewarded, m/s; None: the task's."""
    circuit: CircuitSpec | None = None
    """The policy's table; None for a policy without one, and in recordings of the first version."""
    numbers: Array = field(default_factory=lambda: np.zeros(0))
    """(K,) the numbers of the table after training; K = 0: as the table gives them."""

    def save(self, path: Path) -> None:
        """Write it as one file that is complete or not there at all."""
        about: dict[str, Any] = {name: getattr(self, name) for name in _FACTS}
        tensors: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in (*_SIGNALS, "neurons", "numbers")}
        if self.robot is not None:
            about["robot"] = describe_robot(self.robot)
        if self.circuit is not None:
            about["circuit"] = describe_circuit(self.circuit)
        if self.terrain is not None:
            about["terrain"] = _describe_terrain(self.terrain)
            if "grid" in about["terrain"]:
                tensors["heights"] = self.terrain.heights(self.seed).astype(np.float32)
        write_tensors(path, tensors, {"recording": about})

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read what `save` wrote; anything else is refused with the reason."""
        tensors, description = read_tensors(path)
        about = description.get("recording")
        if about is None:
            raise UserError(f"{path} holds no recording")
        heights = tensors.pop("heights", None)
        values: dict[str, Any] = about | tensors | {"neuron_names": tuple(about["neuron_names"])}
        try:
            if "robot" in about:
                values["robot"] = robot_from(about["robot"])
            if "circuit" in about:
                values["circuit"] = circuit_from(about["circuit"])
            if "terrain" in about:
                values["terrain"] = _terrain_from(about["terrain"], heights)
            else:
                from ncap.tasks import find_task

                find_task(about["task"])  # whose ground is drawn
            return cls(**values)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        except TypeError as error:
            raise UserError(f"{path} is no recording that this version can read ({error})") from None


def is_recording(path: Path) -> bool:
    """Whether a path is a file that holds a recording. A file that is none of ours is refused with the reason."""
    return path.is_file() and "recording" in read_tensors(path)[1]


def record(
    player: str | Path | TrainedPolicy | Controller,
    task: "str | Task | None" = None,
    seed: int = 0,
    title: str | None = None,
    *,
    command: Command | None = None,
) -> Recording:
    """Play one episode, up to a fall or to its end, and keep it.

    player: a policy, its name or file, or a controller for one individual. task: its name; by default the one that the
    policy was trained for. command: what the brainstem says all the time; by default the policy's own.
    """
    from ncap.evaluation import own_command, task_for
    from ncap.rollouts import rollout
    from ncap.tasks import Task, find_task

    if seed < 0:
        raise UserError(f"seed {seed} is negative: seeds are 0, 1, 2, …")
    if isinstance(player, str | Path):
        player = load(player)
    numbers = np.zeros(0)
    if isinstance(player, TrainedPolicy):
        found, controller = task_for(player, task), player.controller(1)
        command = own_command(player, found) if command is None else command
        numbers = numbers_in_use(player, command)
    elif task is None:
        raise UserError("a controller does not know its task: name one")
    else:
        found, controller = task if isinstance(task, Task) else find_task(task), player
    names: tuple[str, ...] = ()
    circuit: CircuitSpec | None = None
    if isinstance(controller, NCAPController):
        names, circuit = controller.circuit.neurons, controller.policy.circuit
    wanted = (*_SIGNALS, *(("neurons",) if names else ()))
    episode = rollout(found, controller, [seed], command=command, record=wanted)
    lived = int(episode.steps[0])
    kept: dict[str, Any] = {name: values[0, :lived] for name, values in episode.signals.items()}
    kept.setdefault("neurons", np.zeros((lived, 0)))
    return Recording(
        title=title or f"{getattr(player, 'name', 'a controller')} on {found.name}",
        task=found.name,
        seed=seed,
        control_dt=found.control_dt,
        neuron_names=names,
        robot=found.robot,
        terrain=found.terrain,
        target_speed=found.target_speed,
        circuit=circuit,
        numbers=numbers,
        **kept,
    )


def numbers_in_use(trained: TrainedPolicy, command: Command | None = None) -> Array:
    """(K,) the numbers of a policy's table after training; of several paces, blended for a single command.

    Empty for a policy without a circuit.
    """
    policy = trained.policy
    if not isinstance(policy, NCAPPolicy):
        return np.zeros(0)
    sets = policy.numbers(trained.theta[None])[:, 0]
    if len(sets) == 1:
        only: Array = sets[0]
        return only
    heard = policy.commands(command, 1)[0, 0]
    shares = np.array([np.interp(heard, policy.paces, alone) for alone in np.eye(len(sets))])
    blended: Array = shares @ sets
    return blended


def _describe_terrain(terrain: Terrain) -> dict[str, Any]:
    """The terrain as JSON data. With an entry "grid", its heights must be stored beside it."""
    if type(terrain) is Bumpy:
        return {"type": "bumpy"} | asdict(terrain)
    return {"type": "flat"} if terrain.grid is None else {"type": "heights", "grid": asdict(terrain.grid)}


def _terrain_from(data: Any, heights: Any) -> Terrain:
    """The inverse of `_describe_terrain`."""
    values = dict(data) if isinstance(data, dict) else {}
    kind = values.pop("type", None)
    if kind == "heights" and heights is not None:
        return RecordedGround(grid=Grid(**values["grid"]), points=heights)
    if kind not in _TERRAINS:
        raise unknown_name("kind of ground", str(kind), (*_TERRAINS, "heights"))
    terrain: Terrain = _TERRAINS[kind](**values)
    return terrain
