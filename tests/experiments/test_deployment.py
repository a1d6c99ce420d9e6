"""The deployment experiment measures what the simulator knows, and counts what it should."""

import csv
import multiprocessing
import sys
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from ncap.deploy import stepped
from ncap.deploy.contract import checksum
from ncap.deploy.link import TwinLink
from ncap.deploy.messages import Command, MalformedMessage, decode_state, encode_command
from ncap.deploy.serving import WIRES
from ncap.deploy.stepped import stepped_twin
from ncap.deploy.steps import UNTIL
from ncap.deploy.twin import FIRST_TICK, Twin
from ncap.errors import UserError
from ncap.experiments import deployment
from ncap.experiments.deployment import GAPS, SCHEDULE, fly, fly_all, fly_once, run
from ncap.experiments.flights import FlightBook, FlightResult, cells, draw, totals
from ncap.experiments.library import SCALES, Library
from ncap.experiments.performance import kept_policy
from ncap.learn.executors import LocalExecutor
from ncap.learn.settings import Training
from ncap.report.tables import read_table
from ncap.sim.a1 import A1
from ncap.sim.go import GO2
from ncap.trained import find_policy, load

SHORT = replace(SCHEDULE, policy=2.0)
HOP = replace(SCHEDULE, policy=0.5)


def fly_here(policy, gap, schedule=SHORT):
    return fly(TwinLink(Twin(GAPS[gap], seed=0)), load(policy), gap, 0, schedule)


@pytest.fixture(params=["lcm", "dds"])
def network(request):
    """Either kind of network of a stepped twin, where it is installed and works."""
    if request.param == "dds":
        pytest.importorskip("cyclonedds", reason="needs the extra go2")
    else:
        request.getfixturevalue("lcm_network")
    return request.param


def test_a_flight_over_a_network_to_another_process_is_the_flight_in_this_one(network):
    robot = GO2 if network == "dds" else A1
    here = Twin(GAPS["all, hard"], seed=0, robot=robot, wire=WIRES[network == "dds"])
    with stepped_twin(GAPS["all, hard"], 0, robot, dds=network == "dds") as there:
        flights = [fly(link, load("untrained"), "all, hard", 0, HOP, robot=robot) for link in (TwinLink(here), there)]
    assert flights[0] == flights[1]
    assert flights[0].distance > 0


def test_a_flight_that_somebody_stopped_is_no_result(monkeypatch):
    twin = TwinLink(Twin(seed=0))
    monkeypatch.setattr(deployment.Deployment, "_orphaned", lambda self: twin.now() > 1.0)
    with pytest.raises(KeyboardInterrupt):
        fly(twin, load("zero"), "none", 0, SHORT)


def test_a_twin_that_is_killed_is_an_error_not_a_wait(network, monkeypatch):
    with stepped_twin(GAPS["none"], 0, dds=network == "dds") as twin:
        twin.wait_until(0.1)
        (process,) = multiprocessing.active_children()
        process.kill()
        process.join()
        monkeypatch.setattr(stepped, "GONE", 0.3)
        for _ in range(2):  # once it is given up nobody waits again
            began = time.monotonic()
            with pytest.raises(ConnectionError, match="does not answer"):
                twin.wait_until(0.2)
        assert time.monotonic() - began < 0.1
        assert twin.truth().position[2] > 0  # the last that was heard


def test_a_twin_that_cannot_be_started_leaves_no_link_open(monkeypatch):
    class Full:
        pid = None

        def start(self):
            raise BlockingIOError("no more processes")

    closed = []
    monkeypatch.setattr(stepped, "SteppedLink", lambda url, private: SimpleNamespace(close=lambda: closed.append(url)))
    monkeypatch.setattr(stepped, "_new_processes", lambda: SimpleNamespace(Process=lambda **options: Full()))
    with pytest.raises(BlockingIOError), stepped_twin(GAPS["none"], 0):
        pass
    assert len(closed) == 1


class LateLink:
    """A commander's link whose states are handed over one by one."""

    name, malformed, rivals, end = "late", 0, 0, None

    def __init__(self, url, clock):
        self.heard, self.states = 0, []

    def hear(self, data):
        self.heard += 1
        self.states.append(data)

    def newest(self):
        return self.states[-1]


def test_the_commander_waits_for_the_states_that_precede_an_answer(monkeypatch):
    """The answer comes first, as it may: DDS keeps the order within a topic only."""
    twin, coming = Twin(seed=0), deque()

    def over(end, says, hears, hear):
        def ask(question):
            states = twin.advance(np.frombuffer(question, UNTIL)[0]["time"])
            coming.append(lambda: hear(stepped.encode_answer(twin, len(states))))
            coming.extend(partial(link._link.hear, state) for state in states)

        return stepped.Steps(ask, lambda moment: coming and coming.popleft()(), lambda: True)

    monkeypatch.setattr(stepped, "LcmLink", LateLink)
    monkeypatch.setattr(stepped, "steps_over", over)
    link = stepped.SteppedLink("lcm://")
    link.wait_until(0.02)
    assert len(coming) == 0
    assert link._link.heard == 10  # 500 a second
    assert decode_state(link.newest()).tick == FIRST_TICK + 20


def test_the_twin_waits_for_the_commands_that_precede_a_question(monkeypatch):
    twin, times, answers = Twin(seed=0), [], []
    command = encode_command(Command(A1.mid, np.full((4, 3), 60.0), np.full((4, 3), 10.0)))
    hearers = {}

    @contextmanager
    def end(url, hear, private):
        hearers["command"] = hear
        yield None, lambda state: True

    def over(end, says, hears, hear):
        question = np.array((0.01, 2), UNTIL).tobytes()
        coming = deque([partial(hear, question), *2 * [partial(hearers["command"], command)]])
        return stepped.Steps(answers.append, lambda moment: coming.popleft()(), lambda: True)

    monkeypatch.setattr(stepped, "open_robot_end", end)
    monkeypatch.setattr(stepped, "steps_over", over)
    stepped.SteppedTwin(twin, "lcm://").serve(lambda: times.append(twin.time) or len(times) <= 3)
    assert times == [0.0, 0.0, 0.0, 0.01]  # before anything came, after the question, after either command
    assert (twin.heard, len(answers)) == (2, 1)
    time_of_answer, states, _ = stepped.decode_answer(answers[0])
    assert (time_of_answer, states) == (0.01, 5)


@pytest.mark.parametrize(
    "numbers", [(np.nan, 0), (11.0, 0), (-1.0, 0), (0.1, -1), (0.1, np.inf), (0.1, np.nan), (0.1,)]
)
def test_a_question_that_makes_no_sense_is_malformed(numbers):
    end = stepped.SteppedTwin(Twin(seed=0), "lcm://")
    with pytest.raises(MalformedMessage):
        end._hear_question(np.array(numbers).tobytes())


@pytest.mark.parametrize("states", [np.inf, np.nan, -1.0])
def test_an_answer_after_no_number_of_states_is_malformed(states):
    whole = np.frombuffer(stepped.encode_answer(Twin(seed=0), 5)).copy()
    assert stepped.decode_answer(whole.tobytes())[1] == 5
    whole[1] = states
    with pytest.raises(MalformedMessage):
        stepped.decode_answer(whole.tobytes())


def test_the_untrained_circuit_walks_and_zero_stands():
    walked, stood = fly_here("untrained", "none"), fly_here("zero", "none")
    assert walked.distance > 0.3  # it walks at 0.2 m/s, minus the start
    assert stood.distance < 0.02
    assert not walked.fell
    assert not stood.fell
    assert walked.seconds == pytest.approx(2.0, abs=0.01)
    assert walked.shake > 10 * stood.shake


def test_a_robot_whose_motors_are_too_weak_to_follow_is_damped(monkeypatch):
    monkeypatch.setitem(deployment.GAPS, "limp", deployment.Gap(strength=0.1))
    assert fly_here("untrained", "limp").fault == "not following"


def test_a_robot_that_cannot_be_calibrated_counts_as_damped_not_as_walked(monkeypatch):
    monkeypatch.setitem(deployment.GAPS, "crooked", deployment.Gap(bias=30.0))
    flight = fly_here("untrained", "crooked")
    assert (flight.fault, flight.distance, flight.fell) == ("not calibrated", 0.0, False)


def result(policy, gap, seed, distance, fell=False, fault=""):
    return FlightResult(
        policy=policy, checksum="0", gap=gap, seed=seed, planned=2.0, seconds=2.0, distance=distance, fell=fell,
        fault=fault, shake=0.5,
    )  # fmt: skip


RESULTS = [
    result("a", "none", 0, 1.0),
    result("a", "none", 1, 2.0, fell=True, fault="tilt"),
    result("b", "none", 0, 3.0, fault="old state"),
    result("b", "none", 1, 1 / 3 + 17 / 6),
]


def test_tables_and_figure_show_every_flight(tmp_path):
    assert cells(RESULTS) == [{"gap": "none", "a": "1.50 m, 1/2 fell", "b": "3.08 m, damped: old state"}]
    a, b = totals([*RESULTS, result("b", "bias 1", 1, 2.0, fell=True)])
    assert (a["flights"], a["falls"], a["gaps_with_falls"], a["damped"], a["distance"]) == (2, 1, 1, 0, 1.5)
    assert (b["flights"], b["falls"], b["gaps_with_falls"], b["damped"]) == (3, 1, 1, 1)
    assert b["distance"] == pytest.approx((2 * 37 / 12 + 2.0) / 3)
    book = FlightBook(tmp_path / "new" / "flights.csv")
    for one in (*RESULTS, RESULTS[0]):  # two processes may fly the same
        book.add(one)
    with book.path.open() as file:
        assert [row["fault"] for row in csv.DictReader(file)] == ["", "tilt", "old state", ""]
    assert FlightBook(book.path).flights() == RESULTS  # to the last digit
    FlightBook(tmp_path / "new" / "flights-go2.csv").add(result("ncap", "none", 0, 1.0))
    draw(book.path.parent)
    for name in ("deployment", "deployment-go2"):
        assert (book.path.parent / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert read_table(book.path.parent / "deployment-go2-total.csv")[0]["name"] == "NCAP"


def test_finished_flights_are_not_flown_again_and_resumed_is_uninterrupted(tmp_path, monkeypatch):
    flown = []

    def fake(policy, gap, seed, schedule, robot):
        flown.append((policy.name, gap, seed))
        if len(flown) == 4:
            raise KeyboardInterrupt
        length = len(policy.name) + len(gap) + seed / 3
        return replace(
            result(policy.name, gap, seed, length), checksum=checksum(policy), planned=schedule.policy
        )  # fmt: skip

    monkeypatch.setattr(deployment, "_fly_to_new_twin", fake)
    pilots = [(load(name), seed) for name in ("untrained", "zero") for seed in (0, 1)]
    what = (pilots, ["none", "loss 1 %"])
    with pytest.raises(KeyboardInterrupt):
        fly_all(FlightBook(tmp_path / "flights.csv"), *what)
    resumed = fly_all(FlightBook(tmp_path / "flights.csv"), *what)
    assert len(flown) == 8 + 1  # the flight that was interrupted is flown again, no other
    assert resumed == fly_all(FlightBook(tmp_path / "other.csv"), *what)
    assert (tmp_path / "flights.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()
    assert len(flown) == 9 + 8

    fly_all(
        FlightBook(tmp_path / "flights.csv"), *what, replace(SCHEDULE, policy=1.0)
    )  # another length is another flight
    assert len(flown) == 17 + 8
    other = replace(load("zero"), policy=replace(load("zero").policy, joints=(4, 2)))
    fly_all(
        FlightBook(tmp_path / "flights.csv"), [(other, 0), (other, 1)], *what[1:]
    )  # and so is another policy of the same name
    assert len(flown) == 25 + 4


def test_a_file_that_is_no_table_of_flights_is_named(tmp_path):
    (tmp_path / "flights.csv").write_text("policy,gap\na,none\n")
    with pytest.raises(UserError, match=r"flights.csv is no table of flights \('checksum'\)"):
        FlightBook(tmp_path / "flights.csv")


@pytest.mark.usefixtures("lcm_network")
def test_a_single_flight_knows_knock_outs_and_commands():
    intact, cut = fly_once("ncap-flat-walk", schedule=HOP), fly_once("ncap-flat-walk", without=["V0v"], schedule=HOP)
    assert cut.policy == "ncap-flat-walk without V0v"
    assert cut.distance != intact.distance
    assert cut == fly(TwinLink(Twin()), load("ncap-flat-walk").without(["V0v"]), "none", 0, HOP)
    faster = fly_once("untrained", command=0.5, schedule=HOP)
    assert faster == fly(TwinLink(Twin()), find_policy("untrained", command=0.5), "none", 0, HOP)


def test_wrong_words_are_refused_before_anything_flies():
    for words, complaint in (
        ({"policy": "horse"}, "unknown policy 'horse'"),
        ({"policy": "random"}, "'random' acts at random"),
        ({"policy": "zero", "gap": "wide"}, "unknown gap 'wide'; valid: none, delay 10 ms"),
        ({"policy": "zero", "seed": -1}, "seed -1 is negative"),
        ({"policy": "untrained", "without": ["V9"]}, "'V9'"),
    ):
        with pytest.raises(UserError, match=complaint):
            fly_once(**words)


def test_a_smoke_is_one_short_flight_of_the_untrained_circuit(tmp_path, monkeypatch):
    @contextmanager
    def twin_here(gap, seed, robot, dds):
        assert not dds
        yield TwinLink(Twin(gap, seed=seed, robot=robot))

    monkeypatch.setattr(deployment, "stepped_twin", twin_here)
    lines: list[str] = []
    library = Library(tmp_path, LocalExecutor(1), 1, lines.append)
    run(library, SCALES["smoke"], tmp_path)
    flights = FlightBook(tmp_path / "flights.csv").flights()
    assert [(f.policy, f.gap, f.seed, f.planned) for f in flights] == [("untrained", "none", 0, 1.5)]
    assert len(lines) == 1
    assert list(read_table(tmp_path / "deployment.csv")[0]) == ["gap", "untrained"]
    for name in ("deployment-total.csv", "deployment.png", "deployment.svg"):
        assert (tmp_path / name).exists()
    run(library, SCALES["smoke"], tmp_path)
    assert len(lines) == 1  # nothing was left to fly


class Trainer(Library):
    """A library whose runs are done in no time: all are the policy that stands."""

    trained: list[Training]

    def train(self, trainings):
        self.trained.extend(trainings)
        load("zero").save(self.folder / "best.safetensors")
        return [self.folder]


def kept_file(out, *run):
    path = kept_policy(out, *run)
    path.parent.mkdir()
    return path


@pytest.fixture
def trainer(tmp_path):
    library = Trainer(tmp_path, LocalExecutor(1), 1, lambda line: None)
    library.trained = []
    return library


def test_a_whole_experiment_flies_three_runs_of_every_kind_across_every_gap(tmp_path, trainer, monkeypatch):
    def fake(book, pilots, gaps, schedule, say, robot):
        asked.append((len(gaps), schedule.policy, [(policy.name, seed) for policy, seed in pilots]))

    asked = []
    monkeypatch.setattr(deployment, "fly_all", fake)
    kinds = ("ncap", "mlp-evolution")
    kept = replace(load("untrained"), about={"task": "bumpy-walk", "robot": "a1"})
    kept.save(kept_file(tmp_path, "bumpy-walk", "ncap", 1))
    run(trainer, replace(SCALES["full"], contenders=kinds), tmp_path)
    pilots = [(kind, seed) for kind in ("untrained", *kinds) for seed in (0, 1, 2)]
    assert asked == [(27, 8.0, pilots)]
    trained = [(training.kind, training.task, training.seed) for training in trainer.trained]
    assert trained == [("ncap", "bumpy-walk", 0), ("ncap", "bumpy-walk", 2)] + [
        ("mlp", "bumpy-walk", seed) for seed in (0, 1, 2)
    ]  # seed 1 of the circuit was kept


def test_a_go2_flies_over_dds_with_policies_that_are_trained_for_it(tmp_path, trainer, monkeypatch):
    pytest.importorskip("cyclonedds", reason="needs the extra go2")
    flown = []

    @contextmanager
    def take_off(gap, seed, robot, dds):
        assert (robot.name, dds) == ("go2", True)
        yield

    def land(link, policy, gap, seed, schedule, command, robot):
        flown.append((policy.name, robot.name))
        return result(policy.name, gap, seed, 1.0)

    monkeypatch.setattr(deployment, "stepped_twin", take_off)
    monkeypatch.setattr(deployment, "fly", land)
    monkeypatch.setattr(deployment, "GAPS", {"none": GAPS["none"]})
    monkeypatch.setattr(deployment, "SEEDS", (0,))
    an_a1s = replace(load("untrained"), about={"task": "bumpy-walk", "robot": "a1"})
    an_a1s.save(kept_file(tmp_path, "bumpy-walk", "ncap", 0))
    run(trainer, replace(SCALES["laptop"], robot="go2", contenders=("ncap", "mlp-ppo")), tmp_path)
    assert [(one.robot, one.kind, one.algorithm) for one in trainer.trained] == [
        ("go2", "ncap", "evolution"),
        ("go2", "mlp", "ppo"),
    ]  # the circuit that is kept in the folder is for another robot
    assert flown == [(name, "go2") for name in ("untrained", "ncap", "mlp-ppo")]
    assert (tmp_path / "flights-go2.csv").exists()
    assert (tmp_path / "deployment-go2.png").exists()


def test_without_cyclone_dds_the_extra_is_named_before_anything_is_trained(tmp_path, trainer, monkeypatch):
    monkeypatch.setitem(sys.modules, "cyclonedds", None)
    with pytest.raises(UserError, match="needs the extra go2"):
        run(trainer, replace(SCALES["laptop"], robot="go2"), tmp_path)
    assert trainer.trained == []


def test_a_go2_walks_to_the_end_of_a_flight():
    pytest.importorskip("cyclonedds", reason="needs the extra go2")
    flight = fly_once("untrained", "all, mild", robot="go2", schedule=SHORT)
    assert (flight.fell, flight.fault) == (False, "")
    assert flight.distance > 0.2
