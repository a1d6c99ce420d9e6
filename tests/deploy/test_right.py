"""A robot that lies on its back or side is turned onto its belly before it rises, if that is wanted."""

from dataclasses import replace

import numpy as np
import pytest

from ncap import cli
from ncap.deploy.link import TwinLink
from ncap.deploy.loop import Deployment
from ncap.deploy.phases import Schedule
from ncap.deploy.safety import Limits
from ncap.deploy.twin import Twin
from ncap.errors import UserError
from ncap.righting import ROLL, lying_on
from ncap.trained import load

SHORT = Schedule(calibration=0.3, low=0.6, stand=0.8, hold=0.2, policy=1.5, halt=0.3, sit=0.6, damping=0.3)
ROLLING_AT = 1.5
"""s after the start at which the robot surely rolls over."""


class Watched(TwinLink):
    """Keeps every command with its time and phase, and where phases began, and calls something at a moment."""

    def __init__(self, twin: Twin, at: float = np.inf, call=lambda: None):
        super().__init__(twin)
        self.log, self.at, self.call = [], at, call
        self.places = {}
        self.flight = None

    def wait_until(self, moment: float) -> None:
        super().wait_until(moment)
        if self.now() >= self.at:
            self.at = np.inf
            self.call()

    def send(self, command) -> None:
        phase = self.flight.outcome.phases[-1][0]
        self.log.append((phase, self.now(), command))
        self.places.setdefault(phase, self.twin.truth().position)
        super().send(command)


def flight(lying: str, policy: str = "zero", at: float = np.inf, call=lambda: None, **settings):
    link = Watched(Twin(lying=lying), at, call)
    said: list[str] = []
    link.flight = Deployment(
        link, load(policy), **{"armed": True, "right": True, "schedule": SHORT, "report": said.append} | settings
    )
    return link, link.flight, said


@pytest.mark.parametrize("lying", ["back", "left", "right"])
def test_a_twin_lies_still_on_what_it_was_put_on(lying):
    twin = Twin(lying=lying)
    for moment in (0.0, 5.0):
        twin.advance(moment)
        assert lying_on(twin.truth().up) == lying
        assert np.abs(twin.truth().joint_velocity).max() < 0.1


def test_on_its_back_it_is_refused_with_a_word_about_the_flag_and_nothing_is_sent():
    for armed in (True, False):
        link, deployment, _ = flight("back", right=False, armed=armed)
        with pytest.raises(UserError, match=r"lies on its back: put it on its belly, or let it roll over with --right"):
            deployment.run()
        assert link.log == []


def test_on_its_back_it_rolls_over_rises_and_walks():
    link, deployment, said = flight("back", "untrained")
    outcome = deployment.run()
    names = [name for name, _ in outcome.phases]
    assert names == ["contract", "calibration", "right", "low", "stand", "hold", "policy", "halt", "sit", "damping"]
    assert outcome.fault is None
    assert [line for line in said if "attempt" in line] == [f"  attempt 1: {pose.name}" for pose in ROLL]
    assert link.twin.truth().up[2] > 0.99
    assert link.twin.truth().position[2] < 0.15  # it has sat down again; it stands at 0.33 m
    start, end = (link.places[name][:2] for name in ("policy", "halt"))
    assert np.linalg.norm(end - start) > 0.1  # the untrained circuit walks
    limits = Limits()
    commanded = np.array([command.position for _, _, command in link.log if not command.is_damping])
    assert (commanded >= limits.position_low).all()
    assert (commanded <= limits.position_high).all()
    assert np.abs(np.diff(commanded, axis=0)).max() < limits.slew * 0.002 + 1e-6  # no command jumps


def test_on_its_belly_the_flag_changes_nothing():
    hop = replace(SHORT, policy=0.1)
    plain, deployment, _ = flight("belly", right=False, schedule=hop)
    deployment.run()
    flagged, deployment, _ = flight("belly", schedule=hop)
    deployment.run()
    assert [name for name, _ in deployment.outcome.phases][2] == "low"
    for (_, at, one), (_, when, other) in zip(plain.log, flagged.log, strict=True):
        assert at == when
        np.testing.assert_array_equal(one.position, other.position)


def test_a_dry_run_says_what_it_would_do_sends_nothing_and_ends_where_the_robot_still_lies():
    link, deployment, said = flight("left", armed=False)
    outcome = deployment.run()
    assert link.log == []
    assert [name for name, _ in outcome.phases] == ["contract", "calibration", "right", "damping"]
    assert outcome.fault is None
    assert [line for line in said if "attempt" in line] == [f"  attempt 1: {pose.name}" for pose in ROLL]
    assert "  the robot still lies on its left side: the dry run ends here" in said
    assert any("would send" in line for line in said)


@pytest.mark.parametrize(("fault", "kind"), [("silence", "old state"), ("hot", "temperature"), ("nan", "not a number")])
def test_a_fault_while_it_rolls_damps_within_50_ms(fault, kind):
    link, deployment, _ = flight("back")
    link.at, link.call = ROLLING_AT, lambda: link.twin.inject(fault)
    outcome = deployment.run()
    assert kind in outcome.fault.kind
    names = [name for name, _ in outcome.phases]
    assert names[-2:] == ["right", "damping"]  # it neither rises nor sits down
    first = next(at for _, at, command in link.log if command.is_damping)
    assert first - ROLLING_AT < 0.050


def test_a_stop_while_it_rolls_damps_at_once():
    link, deployment, _ = flight("back")
    link.at, link.call = ROLLING_AT, deployment.stop
    outcome = deployment.run()
    assert outcome.stopped == "stopped by the operator"
    assert [name for name, _ in outcome.phases][-2:] == ["right", "damping"]


def test_tilt_is_a_fault_again_as_soon_as_it_lies_on_its_belly():
    link, deployment, _ = flight("back")
    link.at, link.call = 6.0, lambda: link.twin.inject("tilt")  # the roll takes 3.9 s
    outcome = deployment.run()
    assert outcome.fault.kind == "tilt"


def test_a_robot_that_does_not_get_onto_its_belly_ends_in_damping_and_says_so(monkeypatch):
    link, deployment, said = flight("back")
    monkeypatch.setattr(link.twin, "_obey", lambda command: None)  # motors that do nothing
    monkeypatch.setattr("ncap.deploy.loop.ATTEMPTS", 2)
    deployment.limits = Limits(following=-np.inf)
    outcome = deployment.run()
    assert outcome.fault.kind == "not righted"
    assert "it lies on its back after 2 attempts" in said[-2]
    assert link.log[-1][2].is_damping


def test_the_command_line_turns_a_twin_over(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["deploy", "zero", "--seconds", "0.1", "--link", "twin:right", "--out", "flight"]
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    assert "lies on its right side" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*words[:-1], "wrong", "--link", "twin:tail"])
    assert "'tail'; valid: belly, back, left, right" in capsys.readouterr().err
    cli.main([*words[:-1], "second", "--right"])
    assert "phase right" in capsys.readouterr().out
    assert (tmp_path / "second" / "recording.safetensors").exists()
