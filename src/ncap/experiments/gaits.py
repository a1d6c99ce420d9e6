"""Gait transitions (the paper's appendix figure): which gait the rhythm generator has at which brainstem command."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.analysis import plots
from ncap.analysis.gaits import Gait, circular_mean, measure_gait
from ncap.circuits.rhythm import (
    EXTENSOR_STANCE,
    RHYTHM_SETTLING,
    check_command,
    extensor_activity,
    random_adaptation,
    rhythm_spec,
)
from ncap.circuits.spec import CircuitSpec
from ncap.errors import UserError
from ncap.evaluation import summarise_gaits
from ncap.experiments.library import Library, Scale
from ncap.plan import QUADRUPED

Array = NDArray[np.float64]

RAMP_SECONDS: Final = 60.0
"""Time in which a ramp takes the command from 0 to 1, s."""
RAMP_NOISE: Final = 0.02
"""Amplitude of the afferents' noise during a ramp."""
LASTING: Final = 4
"""Successive windows, a second apart, that make a gait of a ramp."""
MEASURED: Final = 10.0
"""Time of which the gait is measured, s."""


@dataclass(frozen=True, kw_only=True)
class GaitRow:
    """The gait at one command: the commonest over initial states, with the mean numbers of those that have it."""

    command: float
    gait: str
    share: float
    """Share of initial states with this gait."""
    frequency_hz: float
    left_right_phase: tuple[float, float] | None
    """Fore, hind; None where the legs do not step."""
    fore_hind_phase: tuple[float, float] | None
    """Left, right: fore after hind."""
    diagonal_phase: float | None
    duty: float
    concentration: float


def run(library: Library, scale: Scale, out: Path) -> None:
    """Measure the default rhythm generator at 21 commands and along a ramp, and draw it."""
    spec = rhythm_spec()
    commands = [i / 20 for i in range(21)]
    measured = {c: measure_states(spec, c, states=scale.states, seed=0) for c in commands}
    ramps = sweep(spec, seconds=RAMP_SECONDS, seed=0)
    for suffix in (".svg", ".png"):
        figure(measured, ramps, out / f"gaits{suffix}", "Rhythm generator, preset default")


def measure_states(
    spec: CircuitSpec, command: float, *, states: int, seed: int, dt: float | None = None, noise: float = 0.0
) -> list[Gait]:
    """The gait from each of some random initial states, the same states for every command.

    dt: circuit step, by default the table's own, s. noise: amplitude of white noise on all afferents.
    """
    if states < 1:
        raise UserError(f"at least one initial state is needed, not {states}")
    _check_legs(spec)
    dt = spec.dt if dt is None else dt
    activity = extensor_activity(
        spec,
        np.full(states, check_command(command)),
        random_adaptation(spec, states, seeding.generator(seed, "rhythm states")),
        seconds=RHYTHM_SETTLING + MEASURED,
        dt=dt,
        noise=noise,
        rng=seeding.generator(seed, "rhythm noise") if noise else None,
    )
    return [measure_gait(one, dt, EXTENSOR_STANCE) for one in activity[:, round(RHYTHM_SETTLING / dt) :]]


def _check_legs(spec: CircuitSpec) -> None:
    """Complain about a table whose rhythm has no gait by name."""
    if (found := spec.sites_of(spec.neuron("extensor"))) != QUADRUPED.sites:
        raise UserError(f"a gait is that of the extensors of {' '.join(QUADRUPED.sites)}, but this table has {found}")


def summarise(command: float, gaits: Sequence[Gait]) -> GaitRow:
    """The row of a command from the gaits of its initial states."""
    label = summarise_gaits(gaits).label
    chosen = [gait for gait in gaits if gait.label == label]
    summary = summarise_gaits(chosen)
    diagonal = np.array([phase for gait in chosen if gait.frequency_hz > 0 for phase in gait.diagonal_phase])
    return GaitRow(
        command=command,
        gait=summary.label,
        share=len(chosen) / len(gaits),
        frequency_hz=summary.frequency_hz,
        left_right_phase=summary.left_right_phase,
        fore_hind_phase=summary.fore_hind_phase,
        diagonal_phase=circular_mean(diagonal)[0] if len(diagonal) else None,
        duty=summary.duty,
        concentration=float(np.mean([gait.concentration for gait in chosen])),
    )


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """A steady change of the command between 0 and 1, and the activity of the extensors meanwhile."""

    time: Array
    command: Array
    activity: Array
    """(T, leg)."""
    windows: list[tuple[float, Gait]]
    """(command, gait) in successive windows."""

    def transitions(self) -> list[tuple[str, float]]:
        """(gait, command at which it began), in order. What does not last for LASTING windows is a change under way."""
        result: list[tuple[str, float]] = []
        for label, stretch in groupby(self.windows, key=lambda window: window[1].label):
            commands = [command for command, _ in stretch]
            if label != "none" and len(commands) >= LASTING and (not result or result[-1][0] != label):
                result.append((label, commands[0]))
        return result


def sweep(
    spec: CircuitSpec, *, seconds: float, seed: int, dt: float | None = None, window: float = 3.0
) -> tuple[Ramp, Ramp]:
    """A slow ramp of the command from 0 to 1 and back to 0, from one random initial state, as (up, down).

    With a little noise on the afferents: without any, the two sides of a bounding circuit become equal to the last bit,
    and nothing could ever make them differ again.
    """
    _check_legs(spec)
    dt = spec.dt if dt is None else dt
    start = random_adaptation(spec, 1, seeding.generator(seed, "rhythm states"))
    steps, rest = round(seconds / dt), round(RHYTHM_SETTLING / dt)
    up = np.linspace(0.0, 1.0, steps)
    command = np.concatenate((np.zeros(rest), up, up[::-1]))
    activity = extensor_activity(
        spec,
        command[None],
        start,
        seconds=len(command) * dt,
        dt=dt,
        noise=RAMP_NOISE,
        rng=seeding.generator(seed, "rhythm noise"),
    )[0]

    def part(first: int) -> Ramp:
        here = slice(first, first + steps)
        width = round(window / dt)
        windows = [
            (float(command[i : i + width].mean()), measure_gait(activity[i : i + width], dt, EXTENSOR_STANCE))
            for i in range(first, first + steps - width + 1, width // 3)
        ]
        return Ramp(
            time=np.arange(steps, dtype=np.float64) * dt,
            command=command[here],
            activity=activity[here],
            windows=windows,
        )

    return part(rest), part(rest + steps)


@plots.styled
def figure(measured: dict[float, list[Gait]], ramps: tuple[Ramp, Ramp], path: Path, title: str) -> None:
    """Footfalls while the command rises; close-ups; phases and frequency against the command."""
    up, down = ramps
    fig, axes = plots.figure(
        ["footfalls footfalls footfalls", "slow middle fast", "left_right fore_hind frequency"],
        size=(11, 8.2),
        heights=(1.25, 0.9, 1.5),
    )
    fig.suptitle(title)

    plots.footfalls(axes["footfalls"], up.time, up.activity, threshold=EXTENSOR_STANCE)
    axes["footfalls"].set_title("Predicted footfalls while the brainstem command rises")
    plots.command_axis(axes["footfalls"], up.time, up.command)
    for name, command in (("slow", 0.1), ("middle", 0.5), ("fast", 0.9)):
        start = int(np.searchsorted(up.command, command))
        dt = up.time[1] - up.time[0]
        part = slice(max(0, start - round(1.0 / dt)), start + round(1.0 / dt))
        label = measure_gait(
            up.activity[max(0, start - round(1.5 / dt)) : start + round(1.5 / dt)], dt, EXTENSOR_STANCE
        )
        plots.footfalls(axes[name], up.time[part] - up.time[part][0], up.activity[part], threshold=EXTENSOR_STANCE)
        axes[name].set_title(f"c ≈ {command:g}: {label.label}", color=plots.GAIT_COLOURS[label.label])
        axes[name].set_xlabel("time (s)")

    commands = np.array([c for c, gaits in measured.items() for _ in gaits])
    gaits = [gait for gaits in measured.values() for gait in gaits]
    colours = [plots.GAIT_COLOURS[gait.label] for gait in gaits]
    for name, pair in (("left_right", "left_right_phase"), ("fore_hind", "fore_hind_phase")):
        for i, marker in ((0, "o"), (1, "s")):
            plots.phase_scatter(axes[name], commands, np.array([getattr(g, pair)[i] for g in gaits]), colours, marker)
    axes["left_right"].set_title("Left–right phase (○ fore, □ hind)")
    axes["fore_hind"].set_title("Fore after hind, same side (○ left, □ right)")
    axes["frequency"].scatter(commands, [g.frequency_hz for g in gaits], c=colours, s=14, linewidths=0)
    axes["frequency"].set_title("Step frequency (Hz)")
    axes["frequency"].set_ylim(bottom=0)
    for name in ("left_right", "fore_hind", "frequency"):
        axes[name].set_xlabel("brainstem command c")
        axes[name].set_xlim(-0.03, 1.03)
    for ramp, height, arrow in ((up, 0.18, "→"), (down, 0.06, "←")):
        plots.gait_band(
            axes["frequency"], [c for c, _ in ramp.windows], [g.label for _, g in ramp.windows], height, f"ramp {arrow}"
        )
    plots.gait_legend(fig, sorted({g.label for g in gaits} | {g.label for r in ramps for _, g in r.windows}))
    plots.save(fig, path)
