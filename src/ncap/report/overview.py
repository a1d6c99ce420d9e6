"""One self-contained HTML page about a whole reproduction: every figure and table that is there."""

from pathlib import Path
from typing import Final

from ncap.errors import UserError
from ncap.files import read_text
from ncap.report.page import html_table, svg_image, write_page
from ncap.report.tables import read_table
from ncap.tasks import PAPER_TASKS

SECTIONS: Final = {
    "gaits": ("Gaits of the rhythm generator", "One command makes the circuit walk, trot and bound."),
    "units": ("Units", "How the two kinds of neurons respond to input."),
    "performance": ("Performance", "Test return while learning; mean over seeds with 95 % intervals."),
    "performance-summary": ("Performance, in numbers", "Held-out returns over seeds, and what learning took."),
    "final": ("Every run", "What its best policy does on held-out episodes."),
    "aggregate": (
        "All tasks together",
        "Interquartile means with 95 % intervals, the share of runs that reach a return.",
    ),
    "performance-overall": ("All tasks together, in numbers", "ncap_better: how often a run of NCAP has more."),
    "power": ("Seeds", "Differences of returns, and how many seeds of each it takes to be sure of one that large."),
    "claims": ("What the paper says", "The number that tests each sentence, with its interval."),
    "footfalls": ("Gaits", "Gait, frequency and regularity of every run whose footfalls are drawn."),
    **{
        f"footfalls-{task}": (f"Footfalls on {task}", "Which foot is on the ground, shaded by pressure.")
        for task in PAPER_TASKS
    },
    "parameters": ("Parameters", "How many weights are needed."),
    "generalization": ("Generalisation", "Held-out return when the world is not the one of training (marked)."),
    "generalization-summary": (
        "Generalisation, in numbers",
        "Means over seeds, and falls; both ends of every axis are named.",
    ),
    "weights-ncap": ("Weights of the circuit", "Red is excitatory, blue inhibitory; area is size."),
    "weights-mlp-evolution": ("Weights of the MLP", "Red is positive, blue negative; area is size."),
    "variable-speed": ("Variable speed", "One policy; a brainstem turns a target speed into the command."),
    "variable-speed-commands": ("Speed by the command", "Speed and gait at constant commands."),
    "leading": ("Does the rhythm lead?", "Training with and without bounded afferents and footfalls that count."),
    "algorithms": ("Algorithms", "Evolution, PPO and D4PG against steps and CPU time."),
    "evolution": ("Optimisers", "Rollouts that CMA-ES and ARS need to learn the flat walk."),
    "mlp-evolution": ("MLPs under evolution", "Settings of evolution for an MLP, one changed at a time."),
    "pushes": ("Pushes", "Share of walks that survive a push, against its impulse."),
    "shipped": ("Shipped policies", "What they do on episodes that no choice has seen."),
    "deployment-total": (
        "Deployment, in numbers",
        "Falls, distance in m and shake in rad/s over all flights of a policy.",
    ),
    "deployment": ("Deployment", "Flights on a twin of the robot, across gaps between model and robot."),
}
"""{file name without ending: (title, what it shows)}, in the order of the page."""


LONGEST_TABLE: Final = 300
"""Rows of the longest table that the page shows."""


def write_overview(folder: Path, out: Path) -> None:
    """Write the page from the figures (SVG) and tables (CSV) in a folder of results."""
    body = ["<h1>Reproduction</h1>"]
    for name, (title, shows) in SECTIONS.items():
        figure, table = folder / f"{name}.svg", folder / f"{name}.csv"
        if not (figure.exists() or table.exists()):
            continue
        body.append(f"<h2>{title}</h2><p>{shows}</p>")
        if figure.exists():
            body.append(svg_image(read_text(figure), title))
        if table.exists() and len(rows := read_table(table)) > LONGEST_TABLE:
            body.append(f"<p>{table.name} has {len(rows):,} rows.</p>")
        elif table.exists() and rows:
            head = list(rows[0])
            body.append(html_table([column.replace("_", " ") for column in head], [list(row.values()) for row in rows]))
    if len(body) == 1:
        raise UserError(f"{folder} holds neither a run nor results: make some with ncap train or ncap reproduce")
    write_page(out, "ncap: reproduction", body)
