"""Performance and data efficiency (figure 3 of the paper): NCAP and MLP on the tasks, against environment steps."""

from pathlib import Path
from typing import Final

import numpy as np

from ncap.analysis import plots, stats
from ncap.experiments.curves import LEARNED, mean_curve
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import Training
from ncap.report.tables import write_table

POLICIES: Final = ("ncap", "mlp")


def trainings(scale: Scale) -> list[Training]:
    """All runs of the experiment, NCAP first: it is the quicker one."""
    return [one for policy in POLICIES for task in scale.tasks for one in scale.trainings(task, policy)]


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then write the table and the figure."""
    library.train(trainings(scale))
    found = {
        (task, policy): mean_curve([library.place(one) for one in scale.trainings(task, policy)])
        for task in scale.tasks
        for policy in POLICIES
    }
    rows, final = [], {}
    for (task, policy), (steps, returns) in found.items():
        scores = np.array(
            [
                library.evaluation(str(library.place(one)), one.world, scale.episodes).return_mean
                for one in scale.trainings(task, policy)
            ]
        )
        final[task, policy] = scores
        reached = [steps[curve >= LEARNED][0] if (curve >= LEARNED).any() else np.inf for curve in returns]
        held_out, start = stats.estimate(scores), stats.estimate(returns[:, 0])
        rows.append(
            {
                "task": task,
                "policy": policy,
                "runs": len(scores),
                "untrained": start.value,
                "held_out": held_out.value,
                "held_out_low": held_out.low,
                "held_out_high": held_out.high,
                "worst_run": scores.min(),
                "spread": scores.std(),
                "steps_to_0.9_median": np.median(reached),
            }
        )
    write_table(out / "performance.csv", rows)
    write_table(out / "performance-overall.csv", _overall(final, scale))
    _figure(found, scale, out / "performance.png")
    _profile_figure(final, scale, out / "performance-profile.png")


def _overall(final: dict[tuple[str, str], np.ndarray], scale: Scale) -> list[dict[str, object]]:
    """Over all tasks: means, interquartile means, and how often a run of NCAP beats one of the MLP."""
    scores = {policy: np.array([final[task, policy] for task in scale.tasks]) for policy in POLICIES}
    rows: list[dict[str, object]] = []
    for policy in POLICIES:
        for name, statistic in (("mean", stats.mean), ("interquartile mean", stats.interquartile_mean)):
            found = stats.estimate(scores[policy], statistic)
            rows.append({"policy": policy, "statistic": name, **found._asdict()})
    better = stats.probability_of_improvement(scores["ncap"], scores["mlp"])
    rows.append({"policy": "ncap over mlp", "statistic": "probability of improvement", "value": better})
    return rows


@plots.styled
def _figure(found: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]], scale: Scale, path: Path) -> None:
    names = [task.replace("-", "_") for task in scale.tasks]
    rows = [" ".join(names[i : i + 2]) for i in range(0, len(names), 2)]
    fig, axes = plots.figure(rows, size=(9, 3.1 * len(rows)), heights=(1,) * len(rows))
    for task, name in zip(scale.tasks, names, strict=True):
        for policy in POLICIES:
            steps, returns = found[task, policy]
            plots.curve_band(axes[name], steps / 1e6, *stats.curve_band(returns), policy)
        axes[name].axhline(0.5, color="#999999", linestyle=":", linewidth=1)
        axes[name].set(title=task, ylim=(0, 1.02), ylabel="return", xlabel="environment steps (million)")
        axes[name].set_xlim(left=0)
    axes[names[0]].legend(frameon=False, loc="lower right")
    plots.save_both(fig, path)


@plots.styled
def _profile_figure(final: dict[tuple[str, str], np.ndarray], scale: Scale, path: Path) -> None:
    fig, axes = plots.figure(["profile"], size=(5, 3.2), heights=(1,))
    thresholds = np.linspace(0, 1, 201)
    for policy in POLICIES:
        scores = np.array([final[task, policy] for task in scale.tasks])
        shares = stats.performance_profile(scores, thresholds)
        axes["profile"].plot(thresholds, shares, color=plots.POLICY_COLOURS[policy], label=plots.POLICY_NAMES[policy])
    axes["profile"].set(xlabel="held-out return τ", ylabel="share of runs with return ≥ τ", ylim=(0, 1.02), xlim=(0, 1))
    axes["profile"].legend(frameon=False)
    plots.save_both(fig, path)
