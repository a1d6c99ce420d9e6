"""The paper's policy: afferent feedback (AF) → rhythm generation (RG) → pattern formation (PF).

The brainstem command (BC) sets speed and gait of the rhythm. Forelegs share their AF and PF weights, and so do hind
legs. The rhythm generator is frozen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.circuits.circuit import Circuit, CircuitState
from ncap.circuits.rhythm import STARTS, check_command, rhythm_dt, rhythm_inputs, rhythm_spec, standing_starts
from ncap.errors import UserError
from ncap.legs import LEGS
from ncap.params import Block, ParamSpace

Array = NDArray[np.float64]

JOINTS: Final = ("hip", "thigh", "calf")
AFFERENTS: Final = tuple(
    f"{name}{sign}"
    for sign in "-+"
    for name in (*(f"{joint} {kind}" for kind in ("position", "torque", "velocity") for joint in JOINTS), "foot")
)
"""The 20 afferent signals of a leg: ten observations, split into their negative and positive parts."""
HALF_CENTRES: Final = ("flexor", "extensor")
MOVED: Final = ("thigh", "calf")
"""The joints that the pattern formation moves. Hips are held at 0."""
GIRDLES: Final = ("fore", "hind")
COMMANDS: Final = {"walk": 0.05, "run": 0.9}
"""Brainstem command by the second word of a task's name."""
_GIRDLE_OF_LEG: Final = np.array([0, 0, 1, 1])

#: What is known of reflexes: (afferent, half-centre) → initial weight, whose sign is kept. Others start at 0, free.
REFLEXES: Final = {
    ("thigh position+", "flexor"): 1.0,
    ("calf torque-", "flexor"): -1.0,
    ("hip torque+", "flexor"): -1.0,
    ("thigh torque+", "flexor"): -1.0,
    ("foot+", "flexor"): -1.0,
    ("thigh position-", "extensor"): 1.0,
    ("calf torque-", "extensor"): 1.0,
    ("hip torque+", "extensor"): 1.0,
    ("thigh torque+", "extensor"): 1.0,
    ("foot+", "extensor"): 1.0,
}
#: (joint, half-centre) → initial weight, whose sign is kept.
PATTERN: Final = {
    ("thigh", "flexor"): -0.5,
    ("calf", "flexor"): -0.2,
    ("thigh", "extensor"): 0.3,
    ("calf", "extensor"): 0.8,
}


@dataclass(frozen=True, kw_only=True)
class NCAPPolicy:
    """An immutable description; `bind` gives it weights."""

    command: float
    """Brainstem command c in [0, 1]."""
    preset: str = "default"
    """Numbers of the rhythm generator."""
    copies: int = 1
    """Overparameterisation: 8 in the paper's training, 1 when compact."""
    control_dt: float = 0.030
    paces: tuple[float, ...] = ()
    """Rising commands, each with a set of weights of its own; in between, each set takes over from the one before. So
    one policy has many speeds. Empty: there is one set, for all commands."""

    def __post_init__(self) -> None:
        check_command(self.command)
        for pace in self.paces:
            check_command(pace)
        if any(later <= earlier for earlier, later in pairwise(self.paces)):
            raise UserError(f"the commands of paces must rise, not {self.paces}")

    @cached_property
    def space(self) -> ParamSpace:
        """92 weights when compact, 708 with 8 copies; as many for every pace."""
        reflexes = np.array([[REFLEXES.get((a, h), 0.0) for a in AFFERENTS] for h in HALF_CENTRES])
        pattern = np.array([[PATTERN[joint, h] for h in HALF_CENTRES] for joint in MOVED])
        blocks = [
            Block(
                name=f"AF.{girdle}",
                initial=reflexes,
                signs=np.sign(reflexes),
                labels=(HALF_CENTRES, AFFERENTS),
                copies=self.copies,
            )
            for girdle in GIRDLES
        ]
        for girdle in GIRDLES:
            blocks.append(
                Block(
                    name=f"PF.{girdle}",
                    initial=pattern,
                    signs=np.sign(pattern),
                    labels=(MOVED, HALF_CENTRES),
                    copies=self.copies,
                )
            )
            blocks.append(Block(name=f"PF.{girdle}.bias", initial=np.zeros(2), labels=(MOVED,)))
        if self.paces:
            blocks = [replace(block, name=f"{block.name} at {pace:g}") for pace in self.paces for block in blocks]
        return ParamSpace(blocks)

    @cached_property
    def circuit(self) -> Circuit:
        """The rhythm generator, stepped several times in a control step."""
        dt = rhythm_dt(self.preset)
        return Circuit(rhythm_spec(self.preset), dt=dt, substeps=round(self.control_dt / dt))

    def bind(self, theta: Array) -> "NCAPController":
        """P individuals with weights theta (P, D)."""
        return NCAPController(self, theta)


class NCAPController:
    """P individuals in action. The state is the rhythm generator's."""

    def __init__(self, policy: NCAPPolicy, theta: Array) -> None:
        weights = policy.space.unpack(theta)

        def per_leg(name: str) -> Array:
            """(P, leg, …) of a pair of blocks."""
            pair = np.stack([weights[name.format(girdle)] for girdle in GIRDLES], axis=1)
            return np.ascontiguousarray(pair[:, _GIRDLE_OF_LEG])

        self.circuit, self._preset, self._paces = policy.circuit, policy.preset, policy.paces
        sets = [f" at {pace:g}" for pace in policy.paces] or [""]
        self._sets = [np.stack([per_leg(name + of) for of in sets]) for name in ("AF.{}", "PF.{}", "PF.{}.bias")]
        self.command = np.full(len(theta), policy.command)
        self.feedback = True
        """Whether the afferents reach the rhythm generator."""
        self.share = np.ones(len(theta))
        """(P,) in [0, 1]: how much of the pattern reaches the joints; with 0 the robot keeps its standing pose."""
        self._half_centres = [self.circuit.columns(name) for name in HALF_CENTRES]

    @property
    def command(self) -> Array:
        """(P,) in [0, 1]. To set it blends the weights of several paces."""
        return self._command

    @command.setter
    def command(self, command: Array) -> None:
        self._command = command
        if not self._paces:
            self._afferent, self._pattern, self._bias = (values[0] for values in self._sets)
            return
        shares = [np.interp(command, self._paces, alone) for alone in np.eye(len(self._paces))]
        self._afferent, self._pattern, self._bias = (
            np.einsum("sp,sp...->p...", shares, values) for values in self._sets
        )

    def reset(self, seeds: Sequence[int]) -> CircuitState:
        """One of the rhythm's standing starts for each individual, picked by its episode's seed.

        They are the intact rhythm generator's, also when the circuit has been cut since.
        """
        starts = []
        for seed, command in zip(seeds, np.broadcast_to(self.command, len(seeds)).tolist(), strict=True):
            pick = seeding.generator(seed, "rhythm start").integers(STARTS)
            starts.append([values[pick] for values in standing_starts(self._preset, command)])
        return CircuitState(*map(np.stack, zip(*starts, strict=True)))

    def act(self, state: CircuitState, observation: Array) -> tuple[CircuitState, Array]:
        """(next state, action (P, leg, 3)) from observations (P, leg, 10)."""
        signals = np.maximum(np.concatenate((-observation, observation), axis=-1), 0.0)
        drive = np.matmul(self._afferent, signals[..., None])[..., 0]  # (P, leg, half-centre)
        if not self.feedback:
            drive = np.zeros_like(drive)
        state = self.circuit.step(state, rhythm_inputs(self.command, drive[..., 0], drive[..., 1]))
        outputs = self.circuit.outputs(state)
        rhythm = np.stack([outputs[:, columns] for columns in self._half_centres], axis=-1)
        action = np.zeros((len(observation), len(LEGS), 3))
        pattern = np.matmul(self._pattern, rhythm[..., None])[..., 0] + self._bias
        action[..., 1:] = np.tanh(self.share[:, None, None] * pattern)
        return state, action

    def signals(self, state: CircuitState) -> dict[str, Array]:
        """Activity of all neurons."""
        return {"neurons": self.circuit.outputs(state)}
