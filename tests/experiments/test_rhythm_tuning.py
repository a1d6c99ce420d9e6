import json
import shutil
from importlib import resources

import numpy as np
import pytest

from ncap import cli
from ncap.circuits.rhythm import RELEASED, default_numbers, respecified
from ncap.circuits.tables import load_circuit
from ncap.errors import UserError
from ncap.experiments import rhythm_tuning
from ncap.experiments.rhythm_tuning import Search, named_numbers, search, search_space, wanted_gait

TINY = Search(seed=3, generations=4, population=4, states=1, validate_every=2, validation_states=1)


#: What the search with its earlier, own parameter space found with the stand-in below: first and last best loss, and
#: the best biases, for the settings of the test that uses them.
EARLIER_LOSSES = [2.47589063, 2.02116904]
EARLIER_BIASES = [0.3443, 0.9555, 0.0874, -0.1285, -0.2144, 0.5106, 0.1858, 0.1677, -0.2424]


def fake_objective(numbers, states, entropy):
    """A cheap stand-in with an optimum away from the start: what matters here is the search, not what it searches."""
    spread = sum((value - 0.5) ** 2 for value in numbers["biases"].values())
    return {"distance": spread + 1e-3 * states * (entropy[1] % 7)}


class InProcess:
    """An executor that runs at once, so that the stand-in is visible to the workers."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, *arguments):
        value = function(*arguments)
        return type("Done", (), {"result": lambda self: value})()


@pytest.fixture(autouse=True)
def cheap_search(monkeypatch, request):
    if "real" not in request.keywords:
        monkeypatch.setattr(rhythm_tuning, "objective", fake_objective)
        monkeypatch.setattr(rhythm_tuning, "ProcessPoolExecutor", InProcess)


def run(folder, settings=TINY, report=lambda generation, record: None):
    return search(settings, folder, 1, report)


def test_a_search_that_was_interrupted_ends_in_the_same_numbers(tmp_path):
    unbroken = run(tmp_path / "unbroken")

    def stop_in_generation_2(generation, record):
        if generation == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", report=stop_in_generation_2)
    with (tmp_path / "broken" / "generations.jsonl").open("a") as log:
        log.write('{"generation": 3, "los')  # killed in the middle of a line
    assert run(tmp_path / "broken") == unbroken


def test_a_longer_search_goes_on_from_a_shorter_one(tmp_path):
    run(tmp_path / "a")
    longer = Search(**(vars(TINY) | {"generations": 8}))
    continued = run(tmp_path / "a", longer)
    assert continued == run(tmp_path / "b", longer)


def test_a_search_gets_closer_to_the_optimum(tmp_path):
    losses = []
    settings = Search(**(vars(TINY) | {"generations": 60, "population": 12}))
    run(tmp_path / "s", settings, lambda generation, record: losses.append(min(record["losses"])))
    assert losses[-1] < 0.3 * losses[0]


def test_another_search_in_the_same_folder_is_refused(tmp_path):
    run(tmp_path / "s")
    before = shutil.copytree(tmp_path / "s", tmp_path / "copy")
    with pytest.raises(UserError, match="holds another search"):
        run(tmp_path / "s", Search(**(vars(TINY) | {"seed": 4})))
    assert (before / "generations.jsonl").read_text() == (tmp_path / "s" / "generations.jsonl").read_text()


def test_candidates_keep_every_sign_and_the_start_is_their_centre():
    start = default_numbers()
    space = search_space(start)
    assert space.size == 26 + 9 + 5
    assert named_numbers(space, space.initial, start) == start
    for corner in (space.low, space.high):
        respecified(named_numbers(space, corner, start))  # raises if a sign were wrong


def test_numbers_lie_in_the_ranges_that_the_search_had_before_it_used_the_table():
    start = default_numbers()
    space = search_space(start)
    ranges = dict(zip(space.names, zip(space.low.tolist(), space.high.tolist(), strict=True), strict=True))
    assert list(ranges)[:2] == ["weights: flexor>extensor same #0", "weights: extensor>flexor same #0"]
    assert list(ranges)[-1] == "oscillator: quiet_scale #0"
    for key, value in start["weights"].items():
        assert ranges[f"weights: {key} #0"] == ((0.0, 3.0) if value > 0 else (-3.0, 0.0))
    assert {ranges[f"biases: {name} #0"] for name in start["biases"]} == {(-1.0, 1.0)}
    assert ranges["oscillator: active_time #0"] == (0.3, 3.0)


def test_the_search_takes_the_steps_that_it_took_before_it_used_the_table(tmp_path):
    settings = Search(seed=3, generations=20, population=6, states=1, validate_every=2, validation_states=1)
    losses = []
    numbers, _ = run(tmp_path, settings, lambda _, record: losses.append(min(record["losses"])))
    assert losses[:1] + losses[-1:] == pytest.approx(EARLIER_LOSSES, abs=1e-9)
    assert list(numbers["biases"].values()) == EARLIER_BIASES


def test_the_command_writes_numbers_and_a_table_that_other_commands_take(tmp_path, capsys):
    cli.main(["tune-rhythm", "--out", str(tmp_path), "--generations", "1", "--workers", "1"])
    numbers = json.loads((tmp_path / "rhythm.json").read_text())
    spec = load_circuit(tmp_path / "circuit.json")
    assert spec.rhythm() == respecified(numbers)
    assert sum(entry.row.trainable for entry in spec.entries) == 92  # afferents and motor neurons are there as well
    capsys.readouterr()
    cli.main(["rhythm", "--circuit", str(tmp_path / "circuit.json"), "--commands", "0.5", "--states", "1", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["gait"] == "trot"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--workers", "0"], "at least one worker is needed, not 0"),
        (["--generations", "0"], "a search needs at least one generation, not 0"),
        (["--seed", "-1"], "a seed is a number from 0 on, not -1"),
    ],
)
def test_impossible_searches_are_refused_in_one_line(words, complaint, tmp_path, capsys):
    with pytest.raises(SystemExit):
        cli.main(["tune-rhythm", "--out", str(tmp_path), *words])
    assert capsys.readouterr().err == f"ncap: error: {complaint}\n"


def test_wanted_gaits_are_the_papers_claim():
    assert [wanted_gait(c) for c in (0.0, 0.25, 0.3, 0.4, 0.7, 0.8, 0.85, 1.0)] == [
        "walk", "walk", None, "trot", "trot", None, "bound", "bound",
    ]  # fmt: skip


@pytest.mark.real
@pytest.mark.slow
def test_the_objective_prefers_the_default_to_the_released_numbers():
    default = json.loads(resources.files("ncap.circuits").joinpath("rhythm_default.json").read_text())
    unit = RELEASED.neuron("flexor").unit
    released = {
        "weights": {row.key: row.weight for row in RELEASED.synapses},
        "biases": {row.name: row.bias for row in RELEASED.neurons},
        "oscillator": vars(unit),
    }
    losses = [sum(rhythm_tuning.objective(numbers, 4, (0, 1)).values()) for numbers in (default, released)]
    assert losses[0] < 0.2 * losses[1]
    assert np.isfinite(losses).all()
