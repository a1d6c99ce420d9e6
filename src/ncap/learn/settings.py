"""The settings of a training: everything that determines its result, for the command line and for config.json.

Imports of anything heavy stand inside the methods, so that `ncap --help` answers at once.
"""

import importlib.util
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import tyro

from ncap.errors import UserError, unknown_name
from ncap.extras import missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ncap.circuits.spec import CircuitSpec
    from ncap.learn.ars import ARS
    from ncap.learn.cma import CMA
    from ncap.policies.mlp import MLPPolicy
    from ncap.policies.ncap import NCAPPolicy
    from ncap.tasks import Task

    Array = NDArray[np.float64]
    Trainee = NCAPPolicy | MLPPolicy
    """A policy that can be trained."""

HIDDEN: Final = {"evolution": (256, 256), "ppo": (64, 64), "d4pg": (256, 256)}
"""Hidden layers of the paper's networks, by algorithm."""
EVERY_STAGE: Final = "all"
STAGES: Final = ("AF", "BC", "RG", "PF", EVERY_STAGE)
"""What `trainable` may name; see ncap.circuits.spec.STAGES."""
EPOCHS: Final = 60
LONGEST_EPISODE: Final = 600.0
"""Longest episode of a training, s."""
_MOST: Final = {"epochs": 1_000_000, "environments": 4096, "population": 100_000, "episodes": 10_000}
FOOTFALL_WEIGHT: Final = 0.5
LARGEST_FOOTFALL_WEIGHT: Final = 100.0
_EVOLUTION_ONLY: Final = (
    *("target_speed", "start", "population", "episodes", "training_seconds", "sigma", "footfalls"),
)
_CIRCUIT_ONLY: Final = ("command", "circuit", "without", "trainable", "footfalls")

Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME …")]


@dataclass(frozen=True, kw_only=True)
class Training:
    """Everything that determines the result of a run. `filled` puts in what is left to a default."""

    task: Annotated[str, tyro.conf.Positional] = "flat-walk"
    """flat-walk, flat-run, bumpy-walk, bumpy-run, rough-walk, flat-speeds, flat-drive, bumpy-drive, swim, navigate, or
    a Python file that registers a task."""
    algorithm: str = "evolution"
    """evolution, ppo or d4pg."""
    policy: str | None = None
    """ncap, mlp, or mlp:64x64 with the sizes of its hidden layers; by default ncap, or mlp for ppo and d4pg."""
    circuit: str | None = field(default=None, compare=False)
    """Circuit table of ncap: default, drive, paper, released; of swimmers swimmer, swimmer-turning, swimmer-unshared;
    or a file that `ncap circuit --save` wrote; by default the one that suits the task. The table counts when trainings
    are compared, not its file's name."""
    without: Names = ()
    """Knock-outs before training: pathways such as V0v, populations, single neurons, synapses."""
    trainable: Names = ()
    """Stages of the circuit that are trained: AF, BC, RG, PF, or all; by default the rows that the table marks."""
    robot: str | None = None
    """a1, go1, go2 (with -turning for hips that go far enough for drive tasks), a data sheet (.json), or a Python file
    that registers a robot; by default the task's."""
    links: int | None = None
    """Links of a swimmer, 3 to 13; by default the task's 6."""
    command: float | None = None
    """Brainstem command in [0, 1]; by default the task's."""
    target_speed: float | None = None
    """Speed in m/s that evolution rewards; by default the task's."""
    start: str | None = field(default=None, compare=False)
    """A trained circuit whose weights evolution begins with: a shipped one, a run or a file; by default the untrained
    one. Rows that it does not have begin untrained. It does not count when trainings are compared, as folders move."""
    vary_kp: float = 0.0
    """Share by which kp of an episode may differ from the robot's, up or down: 0.3 means 0.7 to 1.3 times. Tests, and
    the choice of the best policy, have it, too."""
    vary_kd: float = 0.0
    """The same for kd."""
    contact: str = "default"
    """Contact preset: default, elliptic or released."""
    physics: str = "fast"
    """Physics preset of training episodes: fast or paper. Tests, and the choice of the best policy, are always played
    in the task's own."""
    seed: int = 0
    """Seed of the run. The same seed gives the same weights, bit for bit."""
    epochs: int | None = None
    """Epochs in all: of 16 episodes for ppo and d4pg, of population times episodes for evolution; by default 60. With
    --resume, more make the run longer."""
    preset: str = "default"
    """Settings of evolution: default (for ncap CMA-ES with neuromodulators, for an MLP ARS), plain (CMA-ES in single
    weights), few (the same with fewer candidates and larger mutations, for circuits of few weights), ars, ranks, decay
    and raw (ARS by ranks, with decaying weights, and without a normaliser of an MLP's observations), paper or
    released."""
    population: int | None = None
    """Candidates in an epoch of evolution; by default the preset's."""
    episodes: int | None = None
    """Training episodes that each candidate of evolution plays in an epoch; by default 3 with CMA-ES, 1 with ARS. With
    CMA-ES these are those of the first 25 epochs; then it is twice as many, from epoch 50 on three times, and so on."""
    training_seconds: float | None = None
    """Length of these episodes, s; by default 5, with the presets paper and released the task's."""
    sigma: float | None = None
    """Size of evolution's mutations, with CMA-ES of the first ones; by default the preset's."""
    footfalls: float | None = None
    """Weight, beside the return, of feet that do not do what their half-centres say, when evolution selects circuits;
    by default 0.5 where a table bounds its afferents, and otherwise 0."""
    environments: int = 16
    """Robots that ppo and d4pg train with at a time."""
    episode_seconds: float | None = None
    """Length of test episodes, and of ppo's and d4pg's, s; by default the task's 15."""

    def __post_init__(self) -> None:
        if self.algorithm not in HIDDEN:
            raise unknown_name("algorithm", self.algorithm, HIDDEN)
        from ncap.learn.presets import PRESETS

        if self.preset not in PRESETS:
            raise unknown_name("preset", self.preset, PRESETS)
        if not 0 <= self.seed < 2**63:
            raise UserError(f"a seed is a number from 0 on, not {self.seed}; the largest is 2^63 - 1")
        for name, most in _MOST.items():
            value = getattr(self, name)
            if value is not None and not 1 <= value <= most:
                raise UserError(f"{name} is a number from 1 to {most:,}, not {value}")
        if self.footfalls is not None and not 0 <= self.footfalls <= LARGEST_FOOTFALL_WEIGHT:
            raise UserError(f"footfalls is a weight from 0 to {LARGEST_FOOTFALL_WEIGHT:g}, not {self.footfalls:g}")
        for name in ("training_seconds", "episode_seconds"):
            seconds = getattr(self, name)
            if seconds is not None and not 0 < seconds <= LONGEST_EPISODE:
                raise UserError(f"{name} is a number of seconds up to {LONGEST_EPISODE:g}, not {seconds:g}")
        for stage in self.trainable:
            if stage not in STAGES:
                raise unknown_name("stage", stage, STAGES)
        for name in ("vary_kp", "vary_kd"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise UserError(f"{name} is a share from 0 to less than 1, not {getattr(self, name):g}")
        self._check_algorithm()
        world, policy = self.world, self.initial_policy()
        from ncap.policies.brainstem import can_be_driven
        from ncap.policies.seeker import can_seek

        if self.training_seconds is not None and self.training_seconds < world.control_dt:
            raise UserError(f"training episodes need at least one control step, not {self.training_seconds:g} s")
        replace(world, physics=self.physics)  # it complains about an unknown one
        if not math.isclose(policy.control_dt, world.control_dt):
            raise UserError(
                f"the policy acts every {policy.control_dt:g} s, but {world.name} every {world.control_dt:g} s"
            )
        if world.paces and self.target_speed is not None:
            raise UserError(f"{world.name} has a target speed for every command, so --target-speed means nothing to it")
        if self.trains_circuit and self.footfall_weight > 0:
            table = self.table()
            if not any(row.name == "extensor" and table.sites_of(row) == table.plan.sites for row in table.core):
                raise UserError("footfalls are compared with extensors, and this circuit has none in some leg")
        if world.target and self.trains_circuit and not can_seek(self.table()):
            raise UserError(f"{world.name} needs a circuit with commands to turn: --circuit swimmer-turning has them")
        if world.drive and self.trains_circuit and not can_be_driven(self.table()):
            raise UserError(f"{world.name} needs a circuit with the commands turn and stop: --circuit drive has them")
        if world.steered and self.trains_circuit != (self.algorithm == "evolution"):
            raise UserError(f"{world.name} trains a circuit (ncap) by evolution, or an MLP by ppo or d4pg")
        if world.paces and not (self.trains_circuit and self.algorithm == "evolution"):
            raise UserError(f"{world.name} has several commands, so it trains a circuit (ncap) by evolution only")
        if self.algorithm == "evolution":
            self.evolution  # noqa: B018 - it complains about an impossible population
            return
        from ncap.learn.interfaces import CoreDrive
        from ncap.policies.ncap import NCAPPolicy

        if isinstance(policy, NCAPPolicy):
            CoreDrive(policy)  # it complains about tables that PPO cannot train

    def _check_algorithm(self) -> None:
        chosen = {name for name in (*_EVOLUTION_ONLY, *_CIRCUIT_ONLY) if getattr(self, name) not in (None, ())}
        if self.preset != "default":
            chosen.add("preset")
        if self.algorithm != "evolution" and (wrong := chosen & {*_EVOLUTION_ONLY, "preset"}):
            options = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(wrong))
            raise UserError(f"{options}: a setting of evolution, not of {self.algorithm}")
        if not self.trains_circuit and (wrong := chosen & {*_CIRCUIT_ONLY}):
            options = ", ".join(f"--{name}" for name in sorted(wrong))
            raise UserError(f"{options}: a setting of the policy ncap, not of {self.kind}")
        if self.algorithm != "evolution":
            check_installed()

    @property
    def all_epochs(self) -> int:
        """Epochs in all."""
        return EPOCHS if self.epochs is None else self.epochs

    @property
    def kind(self) -> str:
        """The policy's words: ncap, mlp, mlp:64x64."""
        return self.policy or ("ncap" if self.algorithm == "evolution" else "mlp")

    @property
    def trains_circuit(self) -> bool:
        """Whether a circuit is trained, and not an MLP."""
        return self.kind.split(":")[0] == "ncap"

    @property
    def world(self) -> "Task":
        """The task with the robot, gains, contact preset, length and speed that were asked for."""
        from ncap.tasks import find_task, robot_name, with_robot

        kp_factor, kd_factor = ((1.0 - share, 1.0 + share) for share in (self.vary_kp, self.vary_kd))
        world = replace(find_task(self.task), contact=self.contact, kp_factor=kp_factor, kd_factor=kd_factor)
        robot = robot_name(self.robot, self.links)
        if robot is not None:
            world = with_robot(world, robot)
        if self.episode_seconds is not None:
            world = replace(world, episode_seconds=self.episode_seconds)
        return world if self.target_speed is None else replace(world, target_speed=self.target_speed)

    @property
    def practice(self) -> "Task":
        """The task as it is played in training: in another physics, and by candidates of evolution perhaps shorter."""
        from ncap.learn.presets import SECONDS, WHOLE

        whole = replace(self.world, physics=self.physics)
        if self.algorithm != "evolution":
            return whole
        seconds = self.training_seconds
        if seconds is None:
            seconds = whole.episode_seconds if self.preset in WHOLE else min(SECONDS, whole.episode_seconds)
        return replace(whole, episode_seconds=seconds)

    def episodes_in(self, epoch: int) -> int:
        """Training episodes that every candidate of evolution plays in an epoch, the same for all.

        With CMA-ES they grow in number: the better candidates are, the rarer are the falls in which they differ.
        """
        from ncap.learn.cma import CMA
        from ncap.learn.presets import EPOCHS_UNTIL_MORE

        times = 1 + epoch // EPOCHS_UNTIL_MORE if isinstance(self.evolution, CMA) else 1
        return self.candidate_episodes * times

    @property
    def candidate_episodes(self) -> int:
        """The same in the first epochs."""
        from ncap.learn.presets import EPISODES

        usual = max(EPISODES[type(self.evolution)], len(self.world.paces))
        return usual if self.episodes is None else self.episodes

    @property
    def footfall_weight(self) -> float:
        """Weight of the footfalls in evolution's fitness."""
        from ncap.circuits.animal import leads

        if self.footfalls is not None or not self.trains_circuit:
            return self.footfalls or 0.0
        return FOOTFALL_WEIGHT if leads(self.table()) else 0.0

    @property
    def evolution(self) -> "ARS | CMA":
        """Method and settings of evolution for this kind of policy."""
        from ncap.learn.presets import PRESETS

        method = PRESETS[self.preset]["ncap" if self.trains_circuit else "mlp"]
        if self.population is not None:
            method = replace(method, population=self.population)
        return method if self.sigma is None else replace(method, sigma=self.sigma)

    @property
    def circuit_name(self) -> str:
        """The circuit table's name or file: by default the body's own, that can turn where the task asks for it."""
        from ncap.circuits.swimmer import usual_circuit

        world = self.world
        return self.circuit or usual_circuit(world.robot.plan, world.steered)

    def table(self) -> "CircuitSpec":
        """The circuit's table after its knock-outs, its trained rows marked."""
        from ncap.circuits.animal import cut, find_circuit

        spec = cut(find_circuit(self.circuit_name).on(self.world.robot.plan), self.without)
        if not self.trainable:
            return spec
        return spec.trained_by(STAGES[:-1] if EVERY_STAGE in self.trainable else self.trainable)

    def initial_policy(self) -> "Trainee":
        """The policy before training."""
        from ncap.policies.mlp import MLPPolicy
        from ncap.policies.ncap import NCAPPolicy

        kind, _, sizes = self.kind.partition(":")
        world = self.world
        if kind == "ncap" and not sizes:
            if self.algorithm == "d4pg":
                raise UserError(f"{self.algorithm} trains no {self.kind!r}; valid: mlp, mlp:256x256")
            copies = self.evolution.copies if self.algorithm == "evolution" else 1
            command = world.command if self.command is None else self.command
            return NCAPPolicy(
                command=command,
                circuit=self.table(),
                copies=copies,
                control_dt=world.control_dt,
            )
        if kind != "mlp":
            raise UserError(f"unknown policy {self.kind!r}; valid: ncap, mlp, mlp:64x64")
        try:
            hidden = tuple(int(size) for size in sizes.split("x")) if sizes else HIDDEN[self.algorithm]
        except ValueError:
            raise UserError(f"hidden layers are written like mlp:64x64, not {self.kind!r}") from None
        return MLPPolicy(
            hidden=hidden,
            activation="tanh" if self.algorithm == "ppo" else "relu",
            senses=math.prod(world.senses),
            wishes=world.wish_size,
            joints=world.joints,
            control_dt=world.control_dt,
        )

    def initial_weights(self, policy: "Trainee") -> "Array":
        """(D,) the weights before training: the untrained ones, or those of `start`."""
        from ncap.policies.ncap import NCAPPolicy
        from ncap.trained import load

        if self.start is None:
            return policy.space.initial
        found = load(self.start)
        if not isinstance(policy, NCAPPolicy) or not isinstance(found.policy, NCAPPolicy):
            raise UserError(f"only a circuit can begin from another, not an MLP: {self.start}")
        return found.policy.space.carried(found.theta, policy.space)

    def filled(self) -> "Training":
        """The same training with every default written out, so that it stays what it is if defaults change."""
        values: dict[str, Any] = {"policy": self.kind, "epochs": self.all_epochs}
        if self.trains_circuit:
            command = self.world.command if self.command is None else self.command
            values |= {"command": command, "circuit": self.circuit_name}
        if self.algorithm == "evolution":
            method = self.evolution
            values |= {"population": method.population, "sigma": method.sigma, "episodes": self.candidate_episodes}
            values |= {"training_seconds": self.practice.episode_seconds}
            if self.trains_circuit:
                values |= {"footfalls": self.footfall_weight}
        return replace(self, **values)


def check_installed() -> None:
    """Complain if the extra that PPO and D4PG need is missing."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "stable_baselines3")):
        raise missing_extra("training by PPO or D4PG", "rl")


def training_from(config: dict[str, Any], what: str) -> Training:
    """The training of a run's configuration. Settings that did not exist when the run began have their defaults."""
    from ncap.files import decode

    return decode(Training, config, what)
