"""The deployment experiment measures what the simulator knows, and counts what it should."""

import csv
from dataclasses import replace

import pytest

from ncap.deploy import stepped
from ncap.deploy.link import TwinLink
from ncap.deploy.stepped import stepped_twin
from ncap.deploy.twin import Twin
from ncap.errors import UserError
from ncap.experiments import deployment
from ncap.experiments.deployment import SCHEDULE, FlightResult, figure, fly, main, markdown, write_csv

SHORT = replace(SCHEDULE, policy=2.0)


def fly_here(policy, gap, schedule=SHORT):
    return fly(TwinLink(Twin(deployment.GAPS[gap], seed=0)), policy, gap, 0, schedule)


@pytest.mark.usefixtures("lcm_network")
def test_a_flight_over_lcm_to_another_process_is_the_flight_in_this_one():
    hop = replace(SHORT, policy=0.5)
    with stepped_twin(deployment.GAPS["all, hard"], seed=0) as twin:
        assert fly(twin, "untrained", "all, hard", 0, hop) == fly_here("untrained", "all, hard", hop)


def test_a_flight_that_somebody_stopped_is_no_result(monkeypatch):
    twin = TwinLink(Twin(seed=0))
    monkeypatch.setattr(deployment.Deployment, "_orphaned", lambda self: twin.now() > 1.0)
    with pytest.raises(KeyboardInterrupt):
        fly(twin, "zero", "none", 0, SHORT)


@pytest.mark.usefixtures("lcm_network")
def test_a_twin_that_died_is_an_error_not_a_wait(monkeypatch):
    monkeypatch.setattr(stepped, "GONE", 0.3)
    link = stepped.SteppedLink("udpm://239.255.76.67:7796?ttl=0")
    with pytest.raises(ConnectionError, match="does not answer"):
        link.truth()
    link.close()


def test_the_untrained_circuit_walks_and_zero_stands():
    walked, stood = fly_here("untrained", "none"), fly_here("zero", "none")
    assert walked.distance > 0.3  # it walks at 0.2 m/s, minus the start
    assert stood.distance < 0.02
    assert not walked.fell
    assert not stood.fell
    assert walked.seconds == pytest.approx(2.0, abs=0.01)
    assert walked.shake > 10 * stood.shake


def test_a_robot_whose_motors_are_too_weak_to_stand_is_a_fall(monkeypatch):
    monkeypatch.setitem(deployment.GAPS, "limp", deployment.Gap(strength=0.1))
    assert fly_here("untrained", "limp").fell


def test_a_robot_that_cannot_be_calibrated_counts_as_damped_not_as_walked(monkeypatch):
    monkeypatch.setitem(deployment.GAPS, "crooked", deployment.Gap(bias=30.0))
    flight = fly_here("untrained", "crooked")
    assert (flight.fault, flight.distance, flight.fell) == ("not calibrated", 0.0, False)


def result(policy, gap, seed, distance, fell=False, fault=""):
    return FlightResult(
        policy=policy, gap=gap, seed=seed, seconds=2.0, distance=distance, fell=fell, fault=fault, shake=0.5
    )


def test_table_csv_and_figure_show_every_flight(tmp_path):
    results = [
        result("a", "none", 0, 1.0),
        result("a", "none", 1, 2.0, fell=True, fault="tilt"),
        result("b", "none", 0, 3.0, fault="old state"),
        result("b", "none", 1, 3.0),
    ]
    assert list(markdown(results))[2] == (
        "| none | 1.50 m, 0.50 rad/s, **1/2 fell** | 3.00 m, 0.50 rad/s, damped: old state |"
    )
    write_csv(tmp_path / "flights.csv", results)
    with (tmp_path / "flights.csv").open() as file:
        assert [row["fault"] for row in csv.DictReader(file)] == ["", "tilt", "old state", ""]
    figure(results, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_a_wrong_policy_is_refused_before_anything_flies(tmp_path):
    with pytest.raises(UserError, match="unknown policy 'horse'"):
        main([str(tmp_path), "horse"])
    with pytest.raises(UserError, match="say where to write"):
        main([])
