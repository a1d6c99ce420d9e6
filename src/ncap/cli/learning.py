"""Commands that train and measure policies."""

import sys
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import tyro

from ncap.cli.app import Episodes, Json, OutFolder, Seed, Threads, app
from ncap.cli.choice import Body, BodyWords, Brain, BrainWords, chosen
from ncap.cli.terminal import complain, print_json, print_table, training_report
from ncap.errors import UserError
from ncap.learn.settings import Training

if TYPE_CHECKING:
    from ncap.evaluation import Evaluation, GaitSummary

_OF_SWIMMERS: Final = ("undulation", "reached")
"""What JSON has of a body without feet, and with a target."""
_SAME_BRAIN, _SAME_BODY = Brain(), Body()


@app.command
def train(
    training: Annotated[Training, tyro.conf.OmitArgPrefixes],
    out: OutFolder | None = None,
    resume: Path | None = None,
    threads: Threads = 2,
    cluster: str | None = None,
    json: Json = False,
) -> None:
    """Train a policy on a task. Ctrl-C, or even kill -9, loses nothing: go on with --resume.

    Examples: `ncap train flat-walk`, `ncap train bumpy-run --seed 3 --out runs/mine`, `ncap train --resume runs/mine`,
    `ncap train flat-walk --algorithm ppo --policy mlp:64x64`, `ncap train flat-walk --trainable all`,
    `ncap train flat-run --start ncap-flat-run --target-speed 1.5`.

    Args:
        training: Settings of the training.
        out: Run directory; by default runs/TASK-POLICY-SEED, with what is unusual about the run before the seed.
        resume: Go on with this run; its own settings are used, but --epochs can make it longer.
        threads: Simulation threads; they do not change the result.
        cluster: Play evolution's episodes on a Ray cluster: local, or an address. The result is the same, bit for bit.
        json: Print a JSON summary at the end.

    """
    from ncap.learn.executors import Executor, LocalExecutor, RayExecutor
    from ncap.learn.training import read_training, run_name
    from ncap.learn.training import train as train_in
    from ncap.runs import Run, holds_run

    if resume is not None:
        asked, training, folder = training, read_training(resume, (training.task, training.robot)), resume
        for setting in fields(Training):
            said = getattr(asked, setting.name)
            if setting.name != "epochs" and said not in (setting.default, getattr(training, setting.name)):
                raise UserError(f"a resumed run keeps its own {setting.name}: leave out {said!r}")
        if out is not None:
            raise UserError("a resumed run stays in its folder: leave out --out")
        if asked.epochs is not None:
            training = replace(training, epochs=asked.epochs)
    else:
        folder = out or Path("runs") / run_name(training)
        if holds_run(folder):
            raise UserError(f"{folder} holds a run already: go on with it by --resume, or choose another --out")
    if cluster and training.algorithm != "evolution":
        raise UserError(f"--cluster plays the episodes of evolution only, not of {training.algorithm}")
    with training_report(training.all_epochs) as report:
        try:
            executor: Executor = RayExecutor(cluster) if cluster else LocalExecutor(threads)
            try:
                best = train_in(training, folder, executor=executor, threads=threads, report=report, complain=complain)
            finally:
                executor.close()
        except KeyboardInterrupt:
            print(f"\nstopped; nothing is lost. Go on with: ncap train --resume {folder}", file=sys.stderr)
            raise SystemExit(130) from None
    with Run.open(folder) as run:
        saved = run.latest({})
    assert saved is not None
    if json:
        print_json(
            {
                "run": str(folder),
                "epochs": saved.epoch,
                "rollouts": round(saved.facts.rollouts),
                "steps": saved.facts.steps,
                "best_return": best.about["final_return"],
                "best_epoch": best.about["epoch"],
                "parameters": best.parameters,
            }
        )
    else:
        chosen, value = best.about["epoch"], best.about["final_return"]
        print(f"best policy: after {chosen} of {saved.epoch} epochs, return {value:.3f}")
        print(f"run: {folder}   (next: ncap evaluate {folder})")


@app.command
def params(json: Json = False) -> None:
    """Show how many weights each architecture has.

    Args:
        json: Print JSON.

    """
    from ncap.policies.mlp import MLPPolicy
    from ncap.policies.ncap import NCAPPolicy

    sizes = (4, 8, 16, 32, 64, 128, 256)
    counts = {
        "ncap, compact": NCAPPolicy().space.size,
        "ncap, overparameterised": NCAPPolicy(copies=8).space.size,
    } | {f"mlp:{size}x{size}": MLPPolicy(hidden=(size, size)).space.size for size in sizes}
    if json:
        print_json(counts)
    else:
        print_table(("architecture", "weights"), [(name, f"{count:,}") for name, count in counts.items()])


@app.command
def evaluate(
    policy: Annotated[str, tyro.conf.Positional],
    brain: BrainWords = _SAME_BRAIN,
    body: BodyWords = _SAME_BODY,
    episodes: Episodes = 5,
    seed: Seed = 0,
    contact: str | None = None,
    physics: str | None = None,
    kp: float = 1.0,
    kd: float = 1.0,
    speed: float | None = None,
    yaw: float | None = None,
    threads: Threads = 2,
    json: Json = False,
) -> None:
    """Measure a policy on a task: return, falls, speed, cost of transport, gait.

    Examples: `ncap evaluate ncap-flat-walk`, `ncap evaluate runs/mine --episodes 50`,
    `ncap evaluate ncap-flat-walk --without V0v --command 0.5`, `ncap evaluate ncap-drive --speed 0.4 --yaw 0.3`.

    Args:
        policy: zero, random, untrained, a shipped one such as ncap-flat-walk, a run directory (its best) or a file.
        brain: Changes of the circuit.
        body: Task and robot.
        episodes: Episodes of 15 s (swim and navigate: 30 s), each with its own friction, terrain and start.
        seed: The episodes' seeds count up from this one.
        contact: Contact preset: default, elliptic or released; by default the task's.
        physics: Physics preset: paper (steps of 1 ms) or fast (2.5 ms); by default the task's, which is the paper's.
        kp: Factor on the robot's kp.
        kd: Factor on the robot's kd.
        speed: Of a drive task: the speed, m/s, that is wanted all the time in place of wishes that change.
        yaw: The same for the yaw rate, rad/s, positive to the left.
        threads: Simulation threads; they do not change the result.
        json: Print JSON.

    """
    from ncap.analysis.stats import Estimate
    from ncap.evaluation import evaluate as measure
    from ncap.tasks import with_gains, with_wish

    player, world = chosen(policy, brain, body)
    if contact is not None:
        world = replace(world, contact=contact)
    if physics is not None:
        world = replace(world, physics=physics)
    if (kp, kd) != (1.0, 1.0):
        world = with_gains(world, kp, kd)
    if speed is not None or yaw is not None:
        world = with_wish(world, speed or 0.0, yaw or 0.0)
    found = measure(player, world, range(seed, seed + episodes), threads=threads)
    if json:
        driving = ("error_vel_x", "error_yaw", "commands", "yaw_rate_mean")
        left_out = () if found.commands is not None else driving
        data = {name: value for name, value in asdict(found).items() if name not in left_out}
        print_json({name: value for name, value in data.items() if value is not None or name not in _OF_SWIMMERS})
        return
    cost = "–" if found.cost_of_transport is None else f"{found.cost_of_transport:.2f}"
    rows = [
        ("mean return", f"{Estimate(found.return_mean, *found.return_interval)}, 95 % interval"),
        ("returns", f"{min(found.returns):.3f} … {max(found.returns):.3f}"),
        ("falls", f"{found.falls} of {found.episodes}"),
        ("speed", f"{found.speed_mean:.{2 if found.gait else 3}f} m/s"),
        ("cost of transport", cost),
        *(_walking(found, found.gait) if found.gait else _swimming(found)),
    ]
    if found.commands is not None:
        rows += [
            ("wishes", str(found.commands)),
            ("error of the speed", "–" if found.error_vel_x is None else f"{found.error_vel_x:.3f} m/s"),
            ("error of the yaw rate", "–" if found.error_yaw is None else f"{found.error_yaw:.3f} rad/s"),
            ("yaw rate", f"{found.yaw_rate_mean:.3f} rad/s"),
        ]
    print_table((f"{found.policy} on {found.task}", ""), rows)


def _walking(found: "Evaluation", gait: "GaitSummary") -> list[tuple[str, str]]:
    """Lines about a body with feet."""
    return [
        ("gait", f"{gait.label} in {gait.share:.0%} of the episodes, {gait.frequency_hz:.1f} Hz, duty {gait.duty:.2f}"),
        ("regular", f"R ≥ 0.8 in {gait.regular_share:.0%}, median R {gait.concentration:.2f}"),
        ("touchdowns per stride", f"{gait.touchdowns_per_stride:.2f}"),
        ("commanded gait", _commanded(gait)),
        ("roll and pitch, rms", f"{found.roll_rms_deg:.1f}° and {found.pitch_rms_deg:.1f}°"),
        ("action rate", f"{found.action_rate:.3f}"),
        ("smoothness", "–" if found.smoothness is None else f"{found.smoothness:.2f}"),
    ]


def _swimming(found: "Evaluation") -> list[tuple[str, str]]:
    """Lines about a body without feet."""
    rows = [("gait", "none: it has no feet"), ("action rate", f"{found.action_rate:.3f}")]
    if wave := found.undulation:
        rows.append(("undulation", f"{wave.frequency_hz:.2f} Hz, joints bend by up to {wave.amplitude_deg:.0f}°"))
        rows.append(("wavelength", "–" if wave.wavelength is None else f"{wave.wavelength:.2f} body lengths"))
    if found.reached is not None:
        rows.append(("target reached", f"in {found.reached} of {found.episodes} episodes"))
    return rows


def _commanded(gait: "GaitSummary") -> str:
    if gait.commanded is None:
        return "–"
    ratio = "–" if gait.rhythm_ratio is None else f"{gait.rhythm_ratio:.2f}"
    return f"{gait.commanded} in {gait.commanded_share:.0%}; rhythm of the body over the circuit's {ratio}"
