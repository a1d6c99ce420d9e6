import base64
import re
from dataclasses import asdict, replace

import matplotlib.pyplot as plt
import pytest

from ncap import __version__, cli
from ncap.errors import UserError
from ncap.learn.settings import Training
from ncap.report.run_page import _learning_figure, write_report
from ncap.runs import Run
from ncap.tasks import TASKS


@pytest.mark.slow
def test_the_report_is_one_self_contained_page_with_every_figure(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS._members, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=13.0))
    monkeypatch.setattr("ncap.report.run_page.EPISODES", 2)
    run = tmp_path / "run"
    cli.main(["train", "flat-walk", "--epochs", "1", "--population", "4", "--out", str(run)])
    cli.main(["report", str(run)])
    page = (run / "report.html").read_text()
    images = [base64.b64decode(text).decode() for text in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)]
    assert len(images) == 4  # walks, learning, neurons, weights
    assert images[0].index(">untrained: return") < images[0].index(">trained: return")  # side by side
    assert "thigh position+" in images[3]
    assert "<td>ncap train flat-walk --seed 0 --epochs 1 --population 4</td>" in page
    assert re.search(r"<td>begun</td><td>20\d\d-\d\d-\d\dT", page)
    assert f"ncap {__version__}, commit " in page
    for word in ("return", "falls", "cost of transport", "gait", "R"):
        assert f"<dt>{word}</dt>" in page
    for name in ("trained", "untrained", "zero"):
        assert f"<td>{name}</td>" in page
    outside = [link for link in re.findall(r'(?:src|href)="([^"]+)"', page) if not link.startswith(("#", "data:"))]
    assert outside == []


def test_a_run_without_progress_is_refused_with_what_to_do(tmp_path):
    Run.create(tmp_path / "run", asdict(Training(task="flat-walk"))).close()
    with pytest.raises(UserError, match="has not finished an epoch yet: train it first"):
        write_report(tmp_path / "run", tmp_path / "page.html", 1)


def test_runs_by_gradients_and_by_evolution_both_have_a_learning_curve():
    rows = {"rollouts": 0.0, "test_return": 0.5}
    for column, label in (("candidate_return_mean", "candidates, mean"), ("training_return_mean", "training episodes")):
        progress = [rows | {column: 0.4}, rows | {column: 0.6, "rollouts": 16.0}]
        figure = _learning_figure(progress, 15.0, True)
        grey, _ = figure.axes[0].get_lines()[:2]
        assert grey.get_ydata().tolist() == [0.4, 0.6]
        assert grey.get_label().startswith(label)
        plt.close(figure)
