"""One episode kept to be looked at, with the robot, the ground and the circuit that it was played with.

`record` plays one, a robot's flight recorder writes one, replays and videos draw one. Shapes: T control steps, N
neurons of the rhythm generator, sites (legs) in the order of the body plan; SI units. The simulator is imported only
where an episode is played or a task looked up, because the machine beside a robot has none.

Recordings are sent around, so a file is not trusted: `Recording.load` gives one that can be drawn, or a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.animal import AFFERENTS
from ncap.circuits.circuit import CircuitState
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.tables import describe_circuit
from ncap.errors import UserError
from ncap.files import decode, read_tensors, write_tensors
from ncap.policies.controller import Command, Controller
from ncap.policies.ncap import NCAPController, NCAPPolicy
from ncap.policies.seeker import Guide
from ncap.recording_file import (
    FACTS,
    SIGNALS,
    About,
    check_task,
    circuit_in,
    describe_terrain,
    robot_in,
    signals_from,
    terrain_in,
)
from ncap.sim.bodies import describe_body
from ncap.sim.body import Body
from ncap.sim.terrain import Terrain
from ncap.trained import TrainedPolicy, load

if TYPE_CHECKING:
    from ncap.tasks import Task

Array = NDArray[np.float64]

IN_FOLDER: Final = "recording.safetensors"
"""Name of the recording in the folder of a flight."""


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
    signals: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """(T, S) what else was active in the circuit: commands, posture, sums of afferents, neurons that read the rhythm;
    S = 0 where this was not recorded."""
    signal_names: tuple[str, ...] = ()
    """Names of the columns of `signals`: turn.L, roll.FL, afferent_flexor.FL, …"""
    robot: Body | None = None
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
        about: dict[str, Any] = {name: getattr(self, name) for name in FACTS}
        tensors: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in (*SIGNALS, "neurons", "numbers")}
        if self.signal_names:
            tensors["signals"] = self.signals
        if self.robot is not None:
            about["robot"] = describe_body(self.robot)
        if self.circuit is not None:
            about["circuit"] = describe_circuit(self.circuit)
        if self.terrain is not None:
            about["terrain"] = describe_terrain(self.terrain)
            if "grid" in about["terrain"]:
                tensors["heights"] = self.terrain.heights(self.seed).astype(np.float32)
        write_tensors(path, tensors, {"recording": about})

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read what `save` wrote; anything else is refused with the reason."""
        tensors, description = read_tensors(path)
        if "recording" not in description:
            raise UserError(f"{path} holds no recording")
        try:
            about = decode(About, description["recording"], "its description")
            robot = robot_in(about.robot)
            signals = signals_from(tensors, len(about.neuron_names), len(about.signal_names), robot)
            circuit = circuit_in(about.circuit, len(signals["numbers"]), robot)
            if about.terrain is None or about.target_speed is None:
                check_task(about.task)  # whose ground and speed are meant
            values: dict[str, Any] = signals | {name: getattr(about, name) for name in FACTS}
            terrain = terrain_in(about.terrain, tensors.get("heights"))
            return cls(**values, robot=robot, terrain=terrain, circuit=circuit)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None


def recording_at(path: Path) -> Path | None:
    """The file of a recording: the path itself, or the one in the folder of a flight; None if there is none.

    A file that is none of ours is refused with the reason.
    """
    inside = path / IN_FOLDER
    return path if is_recording(path) else inside if is_recording(inside) else None


def is_recording(path: Path) -> bool:
    """Whether a path is a file that holds a recording. A file that is none of ours is refused with the reason."""
    try:
        there = path.is_file()
    except OSError:  # a name that no file can have
        return False
    return there and "recording" in read_tensors(path)[1]


def record(
    player: str | Path | TrainedPolicy | Controller,
    task: "str | Task | None" = None,
    seed: int = 0,
    title: str | None = None,
    *,
    command: Command | Guide | None = None,
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
        found = task_for(player, task)
        player = player.on(found)
        controller = player.controller(1)
        command = own_command(player, found) if command is None else command
        numbers = numbers_in_use(player)
    elif task is None:
        raise UserError("a controller does not know its task: name one")
    else:
        found, controller = task if isinstance(task, Task) else find_task(task), player
    names: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    circuit: CircuitSpec | None = None
    if isinstance(controller, NCAPController):
        names, circuit = controller.circuit.neurons, controller.policy.circuit
        controller = listener = _Listener(controller)
        others = listener.names
    wanted = (*SIGNALS, *(("neurons", "signals") if names else ()))
    episode = rollout(found, controller, [seed], command=command, record=wanted)
    lived = int(episode.steps[0]) - int(episode.diverged[0])  # a step that failed has no numbers
    kept: dict[str, Any] = {name: values[0, :lived] for name, values in episode.signals.items()}
    kept.setdefault("neurons", np.zeros((lived, 0)))
    return Recording(
        title=title or f"{getattr(player, 'name', 'a controller')} on {found.name}",
        task=found.name,
        seed=seed,
        control_dt=found.control_dt,
        neuron_names=names,
        signal_names=others,
        robot=found.robot,
        terrain=found.terrain,
        target_speed=found.target_speed,
        circuit=circuit,
        numbers=numbers,
        **kept,
    )


class _Listener:
    """A circuit for one individual that shows more than its rhythm generator."""

    def __init__(self, controller: NCAPController) -> None:
        self._controller, system = controller, controller.system
        single = {*controller.circuit.neurons, *(n for n in system.names if n.rpartition(".")[0] in AFFERENTS)}
        self.names = tuple(name for name in system.names if name not in single)
        """All signals but those of the rhythm generator and the single afferents."""
        self._columns = [system.index[name] for name in self.names]
        self._last = np.zeros((1, len(self.names)))

    def reset(self, seeds: Sequence[int], command: Command | None = None) -> CircuitState:
        """The state at the start of an episode."""
        return self._controller.reset(seeds, command)

    def act(
        self, state: CircuitState, observation: Array, command: Command | None = None
    ) -> tuple[CircuitState, Array]:
        """(next state, action (1, leg, joint))."""
        state, board = self._controller.think(state, observation, command)
        self._last = board[:, self._columns]
        return state, self._controller.action(board)

    def signals(self, state: CircuitState) -> dict[str, Array]:
        """Activity of the rhythm generator and, in the order of the names, of everything else."""
        return self._controller.signals(state) | {"signals": self._last}


def numbers_in_use(trained: TrainedPolicy) -> Array:
    """(K,) the numbers of a policy's table after training; empty for a policy without a circuit."""
    policy = trained.policy
    if not isinstance(policy, NCAPPolicy):
        return np.zeros(0)
    numbers: Array = policy.numbers(trained.theta[None])[0]
    return numbers
