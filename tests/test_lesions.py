"""Lesions in the body: the same episodes for every circuit, rows as an evaluation finds them, JSON and figure."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from ncap import cli
from ncap.analysis.gaits import circular_distance
from ncap.circuits.animal import animal
from ncap.errors import UserError
from ncap.evaluation import evaluate, foot_gaits
from ncap.lesions import LesionRow, draw_lesions, lesion
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import rollout
from ncap.tasks import TASKS
from ncap.trained import untrained

TASK = replace(TASKS["flat-walk"], episode_seconds=6.0)
CIRCUIT = untrained(NCAPPolicy(command=0.3))


def test_rows_are_what_an_evaluation_of_each_circuit_finds():
    seen = []
    rows = lesion(CIRCUIT, TASK, ["V0", "afferents"], [0.1, 0.6], range(3), report=seen.append)
    assert rows == seen
    assert [(row.without, row.command) for row in rows] == [
        (name, command) for name in ("", "V0", "afferents") for command in (0.1, 0.6)
    ]
    for row in rows:
        player = CIRCUIT.without([row.without] if row.without else [])
        found = evaluate(player, TASK, range(3), command=row.command)
        assert (row.return_mean, row.falls, row.speed_mean) == (found.return_mean, found.falls, found.speed_mean)
        assert (row.gait, row.left_right_phase) == (found.gait.label, found.gait.left_right_phase)
        played = rollout(TASK, player.controller(3), range(3), command=row.command, record=("foot_force",))
        label, count = Counter(gait.label for gait in foot_gaits(TASK, played)).most_common(1)[0]
        assert (row.gait, row.gait_share) == (label, count / 3)


def test_without_v0_the_rhythm_bounds_also_in_the_body_unless_reflexes_hold_the_legs_apart():
    # alone, the rhythm walks at 0.1 and bounds without V0; afferents of the legs' load alternate too: they are bounded
    # in the default table, and in the paper's they are stronger than the rhythm
    longer = replace(TASK, episode_seconds=9.0)
    intact, bounding = lesion(CIRCUIT, longer, ["V0"], [0.1], range(6))  # one fore leg may lead: a gallop, at times
    assert (intact.gait, bounding.gait) == ("walk", "bound")
    assert circular_distance(np.array(intact.left_right_phase), 0.5).max() < 0.1
    assert circular_distance(np.array(bounding.left_right_phase), 0.0).max() < 0.1
    paper = untrained(NCAPPolicy(circuit=animal("paper")))
    _, hearing = lesion(paper, longer, ["V0"], [0.6], [0, 1])
    assert circular_distance(np.array(hearing.left_right_phase), 0.5).max() < 0.1
    _, deaf = lesion(paper.without(["afferents"]), longer, ["V0"], [0.6], [0, 1])
    assert circular_distance(np.array(deaf.left_right_phase), 0.0).max() < 0.1


def test_the_command_is_the_policys_own_or_for_an_untrained_one_the_tasks():
    trained = replace(CIRCUIT, about={"task": "flat-walk"})
    short = replace(TASK, episode_seconds=0.3)
    assert [row.command for row in lesion(trained, short, ["V3"], seeds=[0])] == [0.3, 0.3]
    assert [row.command for row in lesion(CIRCUIT, short, ["V3"], seeds=[0])] == [TASK.command] * 2


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(UserError, match="unknown knock-out 'V9'; valid: V0, V0d"):
        lesion(CIRCUIT, TASK, ["V9"], seeds=[0])
    with pytest.raises(UserError, match="untrained has no circuit, so there is nothing to cut"):
        lesion(untrained(MLPPolicy()), TASK, ["V0"], seeds=[0])
    with pytest.raises(UserError, match=r"brainstem command 2 is outside \[0, 1\]"):
        lesion(CIRCUIT, TASK, ["V0"], [2.0], [0])


def test_the_command_line_prints_the_promised_json_and_writes_a_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(TASKS._members, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=4.5))
    words = ["lesion", "paper-flat-walk", "--without", "V0v", "flexor.FL", "--episodes", "2", "--threads", "1"]
    figure = tmp_path / "lesion.svg"
    cli.main([*words, "--json", "--out", str(figure)])
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["policy", "task", "rows"]
    assert (found["policy"], found["task"]) == ("paper-flat-walk", "flat-walk")
    assert [list(row) for row in found["rows"]] == 3 * [
        [
            "without",
            "command",
            "episodes",
            "return_mean",
            "falls",
            "speed_mean",
            "gait",
            "gait_share",
            "left_right_phase",
        ]
    ]
    assert [row["without"] for row in found["rows"]] == ["", "V0v", "flexor.FL"]
    assert {row["command"] for row in found["rows"]} == {0.05}  # what that policy was trained at
    assert {row["episodes"] for row in found["rows"]} == {2}
    text = figure.read_text()
    for label in ("intact", "without V0v", "without flexor.FL", "paper-flat-walk on flat-walk, 2 episodes"):
        assert f">{label}<" in text


def test_a_fall_at_once_is_drawn_and_valid_json(tmp_path):
    row = LesionRow(
        without="x", command=0.5, episodes=1, return_mean=-0.02, falls=1, speed_mean=-0.1, gait="none", gait_share=1.0,
        left_right_phase=None,
    )  # fmt: skip
    draw_lesions([replace(row, without="", command=0.1), row], tmp_path / "lesion.svg", "title")
    text = (tmp_path / "lesion.svg").read_text()
    assert ">intact, c = 0.1<" in text
    assert text.count("none 100%") == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--without", "V0", "--episodes", "0"], "at least one episode is needed, not 0"),
        (["--without", "V0", "--threads", "0"], "at least one thread is needed, not 0"),
        (["--without", "V0", "--seed", "-1"], "a seed is a number from 0 on, not -1; the largest is 2^63 - 1"),
        (["--without", ","], "at least one lesion is needed, such as --without V0"),
    ],
)
def test_wrong_words_are_one_line(words, complaint, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["lesion", "untrained", *words])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"ncap: error: {complaint}\n"
