"""What happens when the physics itself fails."""

import numpy as np

from ncap.rollouts import Arena
from ncap.sim import simulation
from ncap.tasks import TASKS


def test_simulations_that_diverge_are_named_and_logged_once_and_leave_no_file(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)  # where MuJoCo would write MUJOCO_LOG.TXT
    monkeypatch.setattr(simulation, "_told", set())
    arena = Arena(TASKS["flat-walk"], 3, threads=2)
    arena.start(np.arange(3), [0, 1, 2])
    action = np.zeros((3, 4, 3))
    action[[0, 2]] = np.nan
    with caplog.at_level("WARNING", "ncap.mujoco"):
        outcome = arena.step(np.arange(3), action)
    assert outcome.diverged.tolist() == [True, False, True]
    assert [record.levelname for record in caplog.records] == ["WARNING"]  # two robots, one kind of warning
    assert "huge value in CTRL" in caplog.text
    assert list(tmp_path.iterdir()) == []
