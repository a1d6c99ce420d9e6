"""One episode kept to be looked at, with the robot, the ground and the circuit that it was played with.

`record` plays one, a robot's flight recorder writes one, replays and videos draw one. Shapes: T control steps, N
neurons of the rhythm generator, sites (legs) in the order of the body plan; SI units. The simulator is imported only
where an episode is played or a task looked up, because the machine beside a robot has none.

Recordings are sent around, so a file is not trusted: `Recording.load` gives one that can be drawn, or a sentence.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.animal import AFFERENTS
from ncap.circuits.circuit import CircuitState, initial_numbers
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.tables import circuit_from, describe_circuit
from ncap.errors import UserError, unknown_name
from ncap.files import decode, read_tensors, shown, write_tensors
from ncap.plan import QUADRUPED
from ncap.policies.controller import Command, Controller
from ncap.policies.ncap import NCAPController, NCAPPolicy
from ncap.policies.seeker import Guide
from ncap.sim.bodies import body_from, describe_body
from ncap.sim.body import Body
from ncap.sim.robot import Robot
from ncap.sim.terrain import CELLS_PER_BUMP, Bumpy, Flat, Grid, Terrain, Water
from ncap.trained import TrainedPolicy, load

if TYPE_CHECKING:
    from ncap.tasks import Task

Array = NDArray[np.float64]

LONGEST: Final = 50_000
"""Longest recording that is read, control steps: 25 minutes of a robot that acts every 0.03 s."""
LARGEST: Final = 1e6
"""Largest number that is read, in SI units."""
MOST_ROWS: Final = 2_000
"""Most rows of a circuit's table, and most neurons, that are read."""
MOST_POINTS: Final = 4_000_000
"""Most points of a height field that are read."""
IN_FOLDER: Final = "recording.safetensors"
"""Name of the recording in the folder of a flight."""
_SIGNALS: Final = ("position", "quaternion", "joint_position", "foot_force", "velocity", "action")
"""Signals of every episode."""
_FACTS: Final = ("title", "task", "seed", "control_dt", "target_speed", "neuron_names", "signal_names")
_TERRAINS: Final = {"flat": Flat, "bumpy": Bumpy, "water": Water}
"""Terrains that are stored by their numbers; any other is stored by its heights."""
_BOUNDS: Final = {"seed": (0, 2**63), "control_dt": (1e-4, 1.0), "target_speed": (0.0, 100.0)}
_FORBIDDEN: Final = re.compile(
    r"<\s*(include|replicate|composite|flexcomp|attach|model|extension|plugin|hfield|skin|size|custom|sensor)\b"
    r"|\bfile\s*=|<\s*mesh\b[^>]*\bbuiltin\s*=|\b(width|height)\s*=\s*[\"']\s*\d{4}",
    re.IGNORECASE,
)
"""What the text of a recorded model may not have: other files, and elements that can be of any size."""


@dataclass(frozen=True, kw_only=True)
class _About:
    """The facts in a file, as `Recording.save` writes them."""

    title: str
    task: str
    seed: int
    control_dt: float
    neuron_names: tuple[str, ...] = ()
    signal_names: tuple[str, ...] = ()
    target_speed: float | None = None
    robot: Any = None
    circuit: Any = None
    terrain: Any = None

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise UserError(f"{name} is {value}, outside [{low:g}, {high:g}]")
        for what, names in (("neurons", self.neuron_names), ("signals", self.signal_names)):
            if len(names) > MOST_ROWS:
                raise UserError(f"{len(names)} {what} are more than {MOST_ROWS}")


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
        about: dict[str, Any] = {name: getattr(self, name) for name in _FACTS}
        tensors: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in (*_SIGNALS, "neurons", "numbers")}
        if self.signal_names:
            tensors["signals"] = self.signals
        if self.robot is not None:
            about["robot"] = describe_body(self.robot)
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
        if "recording" not in description:
            raise UserError(f"{path} holds no recording")
        try:
            about = decode(_About, description["recording"], "its description")
            robot = _robot_from(about.robot)
            signals = _signals_from(tensors, len(about.neuron_names), len(about.signal_names), robot)
            circuit = _circuit_from(about.circuit, len(signals["numbers"]), robot)
            if about.terrain is None or about.target_speed is None:
                _check_task(about.task)  # whose ground and speed are meant
            values: dict[str, Any] = signals | {name: getattr(about, name) for name in _FACTS}
            terrain = _terrain_from(about.terrain, tensors.get("heights"))
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
    wanted = (*_SIGNALS, *(("neurons", "signals") if names else ()))
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


def _describe_terrain(terrain: Terrain) -> dict[str, Any]:
    """The terrain as JSON data. With an entry "grid", its heights must be stored beside it."""
    if type(terrain) is Bumpy:
        return {"type": "bumpy"} | asdict(terrain)
    if type(terrain) is Water:
        return {"type": "water"} | asdict(terrain)
    return {"type": "flat"} if terrain.grid is None else {"type": "heights", "grid": asdict(terrain.grid)}


def _signals_from(tensors: dict[str, Array], neurons: int, signals: int, robot: Body | None) -> dict[str, Array]:
    """The arrays of a file, with shapes that fit each other and its robot, and numbers that can be drawn."""
    plan = QUADRUPED if robot is None else robot.plan
    joints, feet = (len(plan.sites), len(plan.joints)), len(plan.sites) if robot is None else len(robot.feet)
    shapes: dict[str, tuple[int, ...]] = {
        "position": (3,),
        "quaternion": (4,),
        "joint_position": joints,
        "foot_force": (feet,),
        "velocity": (3,),
        "action": joints,
        "neurons": (neurons,),
    }
    if signals or "signals" in tensors:
        shapes["signals"] = (signals,)
    for name in tensors.keys() - shapes.keys() - {"numbers", "heights"}:
        raise unknown_name("array", shown(name)[1:-1], (*shapes, "numbers", "heights"))
    for name in shapes:
        if name not in tensors:
            raise UserError(f"the array {name} is missing")
    steps = len(tensors["position"]) if tensors["position"].ndim else 0
    if not 1 <= steps <= LONGEST:
        raise UserError(f"it has {steps} steps, outside [1, {LONGEST}]")
    for name, shape in shapes.items():
        if tensors[name].shape != (steps, *shape):
            raise UserError(f"the array {name} has the shape {tensors[name].shape}, but {(steps, *shape)} is needed")
    found = {name: tensors[name] for name in shapes} | {"numbers": tensors.get("numbers", np.zeros(0))}
    if found["numbers"].ndim != 1:
        raise UserError(f"the array numbers has the shape {found['numbers'].shape}, but (K,) is needed")
    for name, values in found.items():
        if values.dtype.kind != "f" or not (np.abs(values) <= LARGEST).all():  # nor is NaN
            raise UserError(f"the array {name} has numbers that are none, or larger than {LARGEST:g}")
    return {name: values.astype(np.float64) for name, values in found.items()}


def _check_task(name: str) -> None:
    """Refuse a task that is not known. A recording can name one, but not the file of Python that makes it."""
    from ncap.tasks import TASKS

    if name not in TASKS:
        raise unknown_name("task", shown(name)[1:-1], TASKS)


def _robot_from(data: Any) -> Body | None:
    if data is None:
        return None
    robot = body_from(data)
    if not isinstance(robot, Robot):
        return robot  # its model is made from its numbers
    if not robot.model_xml:
        raise UserError(f"the text of the model of its robot {shown(robot.name)} is missing")
    if found := _FORBIDDEN.search(robot.model_xml):
        raise UserError(f"the model of its robot {shown(robot.name)} has {found[0]!r}, which a recording may not have")
    return robot


def _circuit_from(data: Any, numbers: int, robot: Body | None) -> CircuitSpec | None:
    if data is None:
        return None
    rows = data.values() if isinstance(data, dict) else ()
    if sum(len(group) for group in rows if isinstance(group, list)) > MOST_ROWS:
        raise UserError(f"its circuit has more than {MOST_ROWS} rows")
    plan = QUADRUPED if robot is None else robot.plan
    if isinstance(data, dict) and data.get("plan") != plan.name:
        raise UserError(f"its circuit is for the body {shown(data.get('plan'))}, but a recording has {plan.name!r}")
    circuit = circuit_from(data)
    if numbers not in (0, len(initial_numbers(circuit))):
        raise UserError(f"it has {numbers} numbers, but its circuit {len(initial_numbers(circuit))}")
    return circuit


def _terrain_from(data: Any, heights: Any) -> Terrain | None:
    """The inverse of `_describe_terrain`."""
    if data is None:
        return None
    values = dict(data) if isinstance(data, dict) else {}
    kind = values.pop("type", None)
    if kind == "heights" and heights is not None and set(values) == {"grid"}:
        grid = decode(Grid, values["grid"], "its grid")
        _check_extent(asdict(grid), grid.cell)
        if heights.shape != (grid.rows, grid.columns) or not (np.abs(heights) <= 1.000001 * grid.top).all():
            raise UserError(f"its heights do not fit its grid of {grid.rows} × {grid.columns} points")
        return RecordedGround(grid=grid, points=heights)
    if not isinstance(kind, str) or kind not in _TERRAINS:
        raise UserError(f"unknown kind of ground {shown(kind)}; valid: {', '.join(_TERRAINS)}, and heights with a grid")
    terrain: Terrain = decode(_TERRAINS[kind], values, "its ground")
    if isinstance(terrain, Bumpy):
        _check_extent(asdict(terrain), terrain.spacing / CELLS_PER_BUMP)
    return terrain


def _check_extent(values: dict[str, float], cell: float) -> None:
    """Refuse a height field that is no field, or too large, before it is made."""
    for name in ("height", "top", "spacing", "cell", "behind", "ahead", "aside"):
        if name in values and not 0.0 < values[name] <= 1e4:
            raise UserError(f"{name} of its ground is {values[name]:g} m, outside (0, 10000]")
    columns, rows = (values["behind"] + values["ahead"]) / cell, 2 * values["aside"] / cell
    for across, along in ((columns, rows), (values.get("columns", 2), values.get("rows", 2))):
        if min(across, along) < 1 or across * along > MOST_POINTS:
            raise UserError(f"its ground has {along:g} × {across:g} points, more than {MOST_POINTS} or too few")
