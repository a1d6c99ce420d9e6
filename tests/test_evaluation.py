import json
from dataclasses import replace

import numpy as np
import pytest

from ncap import cli
from ncap.analysis.gaits import Gait
from ncap.circuits.animal import animal
from ncap.errors import UserError
from ncap.evaluation import (
    commanded_gait,
    cost_of_transport,
    evaluate,
    foot_gaits,
    footfall_errors,
    own_command,
    summarise_gaits,
    task_for,
    transport_cost,
)
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import Episodes
from ncap.tasks import TASKS
from ncap.trained import load, shipped_policies, untrained

TASK = TASKS["flat-walk"]


def episodes(signals, steps):
    n = len(steps)
    nothing = np.zeros(n)
    return Episodes(
        returns=nothing, terms={}, steps=np.array(steps), fell=np.zeros(n, bool), diverged=np.zeros(n, bool),
        distance=nothing, signals=signals,
    )  # fmt: skip


def test_cost_of_transport_by_hand():
    # twelve joints at 2 N m and -0.5 rad/s give 12 W; over 12.4534 kg * 9.81 m/s^2 * 0.5 m/s = 61.08 W that is 0.1965
    torque, velocity = np.full((1, 10, 4, 3), 2.0), np.full((1, 10, 4, 3), -0.5)
    signals = {"torque": torque, "joint_velocity": velocity}
    assert transport_cost(TASK, episodes(signals, [10]), 0.5) == pytest.approx(0.1965, abs=1e-4)
    assert transport_cost(TASK, episodes(signals, [10]), 0.0) is None
    assert cost_of_transport(12.0, 12.4534, 0.5) == pytest.approx(0.1965, abs=1e-4)


def test_the_gait_is_read_from_foot_forces_and_bounces_are_ignored():
    # a trot of 2 Hz: diagonal feet pressed with 40 N for 60 % of a period; one foot lifts for 30 ms in every stance
    time = np.arange(500) * 0.03
    phase = (time[:, None] / 0.5 - np.array([0.5, 0.0, 0.0, 0.5])) % 1.0
    force = np.where(phase < 0.6, 40.0, 0.0)
    force[(phase[:, 2] > 0.25) & (phase[:, 2] < 0.31), 2] = 0.0
    (gait,) = foot_gaits(TASK, episodes({"foot_force": force[None]}, [500]))
    assert gait.label == "trot"
    assert gait.frequency_hz == pytest.approx(2.0, abs=0.05)


def test_short_footfalls_of_a_run_are_no_bounces():
    # a bound at 4.8 Hz, as the trained circuits run: 7 control steps a stride, the forefeet stand for 2 of them
    phase = (np.arange(500)[:, None] - np.array([3, 3, 0, 0])) % 7
    force = np.where(phase < np.array([2, 2, 3, 3]), 40.0, 0.0)
    (gait,) = foot_gaits(TASK, episodes({"foot_force": force[None]}, [500]))
    assert gait.label == "bound"
    assert gait.frequency_hz == pytest.approx(1 / 0.21, abs=0.05)
    assert gait.concentration == pytest.approx(1.0)


def trot(steps=500, rates=(2.0, 2.0, 2.0, 2.0)):
    """(foot forces (T, leg) in N, phases) of a trot whose legs make so many strides a second, 55 % of them standing."""
    phase = (np.arange(steps)[:, None] * 0.03 * np.array(rates) - np.array([0.5, 0.0, 0.0, 0.5])) % 1.0
    return np.where(phase < 0.55, 40.0, 0.0), phase


def gait_of(force):
    return foot_gaits(TASK, episodes({"foot_force": force[None]}, [len(force)]))[0]


def test_a_foot_that_taps_twice_is_seen_though_the_label_hides_it():
    force, phase = trot()
    assert gait_of(force).touchdowns_per_stride == pytest.approx(1.0, abs=0.05)
    lifted = (phase > 0.2) & (phase < 0.4) & (np.arange(4) >= 2)  # both hind feet, within their stance
    tapping = gait_of(np.where(lifted, 0.0, force))
    assert tapping.touchdowns_per_stride == pytest.approx(1.5, abs=0.08)  # (1 + 1 + 2 + 2) / 4


def test_a_leg_at_half_speed_has_no_gait():
    halved = gait_of(trot(rates=(2.0, 2.0, 2.0, 1.0))[0])
    assert halved.label == "none"
    assert halved.concentration < 0.8


def test_a_mixture_of_episodes_is_not_averaged_away():
    regular, halved = gait_of(trot()[0]), gait_of(trot(rates=(2.0, 2.0, 2.0, 1.0))[0])
    found = summarise_gaits([regular] * 3 + [halved] * 2, commanded=replace(regular, label="bound", frequency_hz=1.6))
    assert (found.label, found.share, found.regular_share) == ("trot", 0.6, 0.6)
    assert (found.commanded, found.commanded_share) == ("bound", 0.0)
    assert found.rhythm_ratio == pytest.approx(2.0 / 1.6, abs=0.02)


def made_up(label="trot", hz=2.0, phase=0.5, duty=0.6, r=1.0, taps=1.0):
    return Gait(
        label=label, frequency_hz=hz, left_right_phase=(phase, phase), fore_hind_phase=(0.5, 0.5),
        diagonal_phase=(0.0, 0.0), duty=duty, concentration=r, touchdowns_per_stride=taps,
    )  # fmt: skip


def test_numbers_of_a_summary_are_over_all_episodes_and_only_phases_over_the_commonest_gait():
    nan = float("nan")
    trots = [made_up(r=0.99, phase=0.48), made_up(r=0.95, phase=0.52, hz=2.2)]
    others = [
        made_up("none", hz=4.0, phase=0.1, duty=0.3, r=0.3, taps=2.0),
        made_up("bound", hz=3.0, phase=0.0, duty=0.4, r=0.9),
        made_up("none", hz=0.0, phase=nan, duty=1.0, r=0.0, taps=0.0),  # it stands
    ]
    found = summarise_gaits([*trots, *others], commanded=made_up("bound", hz=2.5))
    assert (found.label, found.share) == ("trot", 0.4)
    assert found.frequency_hz == pytest.approx((2.0 + 2.2 + 4.0 + 3.0) / 4)  # of those that step
    assert found.duty == pytest.approx((0.6 + 0.6 + 0.3 + 0.4 + 1.0) / 5)
    assert found.concentration == 0.9  # in the middle of 0, 0.3, 0.9, 0.95, 0.99
    assert found.regular_share == 0.6
    assert found.touchdowns_per_stride == pytest.approx((1 + 1 + 2 + 1) / 4)
    assert found.left_right_phase == pytest.approx((0.5, 0.5))  # of the two trots
    assert (found.commanded, found.commanded_share) == ("bound", 0.2)
    assert found.rhythm_ratio == pytest.approx(2.8 / 2.5)


def test_one_good_episode_of_three_does_not_make_a_summary_regular():
    found = summarise_gaits([made_up(), made_up("none", r=0.2), made_up("none", r=0.4)])
    assert (found.label, found.concentration, found.left_right_phase) == ("none", 0.4, (0.5, 0.5))
    assert found.commanded_share is None


def test_footfalls_are_measured_over_the_life_of_an_episode_from_extensors_and_foot_forces():
    # 20 samples; the extensors of FL and HR are active in the first ten. The foot FL presses a sample later, HR always,
    # and the others never
    policy = NCAPPolicy()
    extensors = policy.core.columns("extensor")
    neurons, force = np.zeros((2, 20, 28)), np.zeros((2, 20, 4))
    neurons[:, :10, [extensors[0], extensors[3]]] = 0.9
    neurons[:, :10, extensors[1]] = 0.1  # too little for a stance
    force[:, 1:11, 0] = 40.0
    force[:, :, 3] = 40.0
    force[:, :, 2] = 3.0  # too little for a contact
    found = footfall_errors(policy, episodes({"foot_force": force, "neurons": neurons}, [20, 11]))
    # HR is wrong in nine of 19 pairs of samples; who fell after 11 samples has ten pairs, and is right in all of them
    assert found == pytest.approx([9 / 19 / 4, 0.0])


def test_the_commanded_gait_is_the_circuits_own():
    # docs/concepts/rhythm.md: the paper's rhythm walks at 1.1 Hz at c = 0.05, and bounds at 2.8 Hz at c = 0.9
    paper = untrained(NCAPPolicy(circuit=animal("paper")))
    walk, bound = (commanded_gait(paper, command) for command in (0.05, 0.9))
    assert (walk.label, bound.label) == ("walk", "bound")
    assert (walk.frequency_hz, bound.frequency_hz) == (pytest.approx(1.1, abs=0.1), pytest.approx(2.8, abs=0.1))
    gaits = [commanded_gait(load("untrained"), command) for command in (0.2, 0.5, 0.95)]
    assert [gait.label for gait in gaits] == ["walk", "trot", "bound"]
    assert gaits[0].frequency_hz < gaits[1].frequency_hz < gaits[2].frequency_hz
    assert commanded_gait(load("zero"), None) is None
    cut = load("untrained").without(["V0v"])
    assert commanded_gait(cut, 0.5).label != "trot"  # V0v is what makes it


def test_an_early_fall_leaves_a_gait_without_numbers_but_valid_json():
    (gait,) = foot_gaits(TASK, episodes({"foot_force": np.full((1, 500, 4), np.nan)}, [20]))
    summary = summarise_gaits([gait])
    assert summary.label == "none"
    assert "NaN" not in json.dumps(vars(summary))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "authors", "falls"),
    [("flat-walk", 0.70, 0), ("flat-run", 0.58, 0), ("bumpy-walk", 0.62, 0), ("bumpy-run", 0.56, 6)],
)
def test_untrained_the_circuit_walks_at_least_as_well_as_the_authors(name, authors, falls):
    """A trot of half a metre a second over bumps, never practised, ends in a fall in a quarter of the episodes."""
    found = evaluate(load("untrained"), TASKS[name], range(20), threads=2)
    assert found.parameters == 112
    assert found.falls <= falls
    assert found.return_mean >= authors


@pytest.mark.parametrize("name", [name for name in shipped_policies() if not name.startswith("ncap")])
def test_what_is_shipped_does_what_it_was_trained_for(name):
    found = load(name).evaluate(seeds=range(6), threads=2)
    assert found.task == name.split("-", 1)[1]
    whole = [value for value in found.returns if value > 0.9]
    if name in ("paper-flat-run", "paper-bumpy-run"):  # trained from standing: from some phases of the gait they fall
        assert len(whole) >= 6 - found.falls >= 3
    else:
        assert (len(whole), found.falls) == (6, 0)


@pytest.mark.parametrize("name", [name for name in shipped_policies() if name.startswith("ncap")])
def test_shipped_circuits_do_better_than_standing_still_and_their_rhythm_leads(name):
    found = load(name).evaluate(seeds=[0, 1], threads=2)
    standing = load("zero").evaluate(found.task, seeds=[0, 1], threads=2)
    assert found.task == load(name).task
    assert found.return_mean > standing.return_mean + 0.1
    if name == "ncap-swim":
        assert found.gait is None  # no feet
    else:
        assert found.gait.rhythm_ratio == pytest.approx(1.0, abs=0.15)  # of the paper's policies, up to 2


def test_policies_are_found_by_name_run_or_file(tmp_path):
    untrained(NCAPPolicy(command=TASK.command)).save(tmp_path / "best.safetensors")
    short = replace(TASK, episode_seconds=0.6)
    found = [
        evaluate(load(name), short, [3]).return_mean for name in ("untrained", tmp_path, tmp_path / "best.safetensors")
    ]
    assert found[0] == found[1] == found[2]
    with pytest.raises(UserError, match="unknown policy 'nobody'; valid: zero, random, untrained"):
        load("nobody")


def test_a_policy_plays_the_task_that_it_was_trained_for_unless_told_otherwise():
    trained = replace(load("untrained"), about={"task": "bumpy-run"})
    assert task_for(trained).name == "bumpy-run"
    assert task_for(trained, "flat-run").name == "flat-run"
    assert task_for(load("untrained")).name == "flat-walk"
    assert own_command(trained, TASK) is None
    assert own_command(load("untrained"), TASKS["flat-run"]) == TASKS["flat-run"].command != TASK.command
    with pytest.raises(UserError, match="was trained for 'moon-walk', which is not known here"):
        task_for(replace(trained, about={"task": "moon-walk"}))
    with pytest.raises(UserError, match=r"acts every 0.03 s, but flat-walk every 0.02 s"):
        task_for(trained, replace(TASK, control_dt=0.02))


def test_evaluate_prints_the_promised_json(capsys):
    cli.main(["evaluate", "zero", "--episodes", "2", "--json", "--threads", "1"])
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        "task", "policy", "parameters", "episodes", "returns", "return_mean", "return_interval", "falls",
        "speed_mean", "cost_of_transport", "roll_rms_deg", "pitch_rms_deg", "action_rate", "smoothness", "gait",
    ]  # fmt: skip
    assert list(found["gait"]) == [
        "label", "share", "frequency_hz", "duty", "left_right_phase", "fore_hind_phase", "concentration",
        "regular_share", "touchdowns_per_stride", "commanded", "commanded_share", "rhythm_ratio",
    ]  # fmt: skip
    assert found["return_mean"] == pytest.approx(0.5, abs=0.01)
    assert found["gait"]["duty"] == 1.0


def test_a_task_with_several_paces_is_measured_at_its_own_speed():
    speeds = replace(TASKS["flat-speeds"], episode_seconds=0.9)
    alone = replace(speeds, paces=())
    walk = load("ncap-flat-speeds")
    assert evaluate(walk, speeds, range(2)).returns == evaluate(walk, alone, range(2)).returns
