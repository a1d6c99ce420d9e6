import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from ncap import cli
from ncap.circuits.rhythm import preset_numbers, released_numbers, respecified
from ncap.circuits.tables import load_circuit
from ncap.errors import UserError
from ncap.experiments import rhythm_tuning
from ncap.experiments.rhythm_objective import wanted_gait
from ncap.experiments.rhythm_tuning import Search, named_numbers, search, search_space
from ncap.experiments.search_folder import SearchFolder
from ncap.runs import BusyError

TINY = Search(seed=3, generations=4, population=4, validate_every=2, validation_states=1)


def fake_objective(numbers, states, entropy, care="thorough"):
    """A cheap stand-in with an optimum away from the start: what matters here is the search, not what it searches."""
    spread = sum((value - 0.5) ** 2 for value in numbers["biases"].values())
    return {"distance": spread + 1e-3 * states * (entropy[1] % 7)}


class InProcess:
    """An executor that runs at once, so that the stand-in is visible to the workers."""

    def __init__(self, *_, **__):
        pass

    def shutdown(self, cancel_futures):
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


def test_a_second_process_in_the_same_folder_is_refused(tmp_path):
    run(tmp_path)
    header = asdict(TINY) | {"generations": None}
    with SearchFolder(tmp_path, header, TINY.validates, print), pytest.raises(BusyError, match="another process"):
        run(tmp_path)
    run(tmp_path)  # the folder is free again


def edited(change):
    """The third of the log's four lines after a change of its record."""

    def damage(path):
        lines = path.read_text().splitlines(keepends=True)
        record = json.loads(lines[2])
        change(record)
        path.write_text("".join((*lines[:2], json.dumps(record) + "\n", lines[3])))

    return damage


def replaced(by):
    def damage(path):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join((*lines[:2], by, lines[3])))

    return damage


def fifo(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "damage",
    [
        replaced(b"\n"), replaced(b"{\n"), replaced(b"[]\n"), replaced(b"null\n"), replaced(b"\xff\xfe\n"),
        replaced(b"[" * 100_000 + b"\n"), replaced(b""), fifo,
        edited(lambda record: record.update(generation=7)), edited(lambda record: record.update(losses=[1.0])),
        edited(lambda record: record.update(losses=[1.0, 2.0, float("nan"), 3.0])),
        edited(lambda record: record.update(losses="abcd")), edited(lambda record: record.pop("losses")),
        edited(lambda record: record.update(terms={"distance": 0.0})), edited(lambda record: record.update(extra=1)),
    ],
)  # fmt: skip
def test_what_is_damaged_in_the_log_is_done_again_and_said(tmp_path, damage):
    unbroken, told = run(tmp_path), []
    whole = (tmp_path / "generations.jsonl").read_text()
    damage(tmp_path / "generations.jsonl")
    assert search(TINY, tmp_path, 1, lambda *_: None, told.append) == unbroken
    assert (tmp_path / "generations.jsonl").read_text() == whole
    assert len(told) == 1
    assert "generations.jsonl" in told[0]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, None])
def test_damaged_settings_are_set_aside_and_the_search_begins_anew(tmp_path, content):
    unbroken, told, header = run(tmp_path), [], tmp_path / "search.json"
    before = header.read_text()
    header.unlink()
    if content is not None:
        header.write_bytes(content)
    assert search(TINY, tmp_path, 1, lambda *_: None, told.append) == unbroken
    assert header.read_text() == before
    aside = {"generations.jsonl.damaged-1"} | ({"search.json.damaged-1"} if content is not None else set())
    assert {path.name for path in tmp_path.glob("*damaged*")} == aside
    assert len(told) == len(aside)


def test_on_a_full_disk_the_search_ends_in_a_sentence_and_goes_on_later(tmp_path):
    unbroken = run(tmp_path / "unbroken")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, usual[1]))  # no file can grow beyond 3 kB
    try:
        with pytest.raises(
            UserError, match=r"cannot write .*generations\.jsonl: File too large; the same command goes"
        ):
            run(tmp_path / "full")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert (tmp_path / "full" / "generations.jsonl").stat().st_size == 3000  # in the middle of a line
    assert run(tmp_path / "full") == unbroken


def test_a_folder_that_cannot_be_made_or_written_is_refused_before_the_search(tmp_path, capsys):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    for folder in ["/proc/search"] if os.geteuid() == 0 else ["/proc/search", locked / "search", locked]:
        with pytest.raises(SystemExit):
            cli.main(["tune-rhythm", "--out", str(folder)])
        err = capsys.readouterr().err
        assert err.startswith("ncap: error: cannot ")
        assert err.count("\n") == 1


def children(pid):
    """Processes that a process has started and that still work."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = status.read_text().rpartition(")")[2].split()
            if int(words[1]) == pid and words[0] != "Z":
                found.append(int(status.parent.name))
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.real
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_search_that_is_stopped_ends_at_once_and_leaves_no_workers(name, tmp_path):
    program = [sys.executable, "-m", "ncap", "tune-rhythm", "--out", str(tmp_path / "s"), "--workers", "2"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while len(workers := children(process.pid)) < 3:  # two workers, and Python's own tracker of resources
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(1.0)
    started = time.monotonic()
    if name == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody gets it
    else:
        process.send_signal(signal.Signals[name])
    process.wait()
    assert time.monotonic() - started < 5.0  # a second where the machine is free
    said = process.communicate()[1]
    assert "Traceback" not in said
    if name == "SIGINT":
        assert (process.returncode, said) == (130, f"stopped; the same command goes on from {tmp_path / 's'}\n")
    while any(alive(worker) for worker in workers):
        assert time.monotonic() - started < 10.0
        time.sleep(0.02)


def test_candidates_keep_every_sign_and_the_start_is_their_centre():
    start = released_numbers()
    space = search_space(start)
    assert space.size == 26 + 9 + 5
    assert named_numbers(space, space.initial, start) == start
    for corner in (space.low, space.high):
        respecified(named_numbers(space, corner, start))  # raises if a sign were wrong


def test_numbers_lie_in_the_ranges_that_the_search_had_before_it_used_the_table():
    start = released_numbers()
    space = search_space(start)
    ranges = dict(zip(space.names, zip(space.low.tolist(), space.high.tolist(), strict=True), strict=True))
    assert list(ranges)[:2] == ["weights: flexor>extensor same #0", "weights: extensor>flexor same #0"]
    assert list(ranges)[-1] == "oscillator: quiet_scale #0"
    for key, value in start["weights"].items():
        assert ranges[f"weights: {key} #0"] == ((0.0, 3.0) if value > 0 else (-3.0, 0.0))
    assert {ranges[f"biases: {name} #0"] for name in start["biases"]} == {(-1.0, 1.0)}
    assert ranges["oscillator: active_time #0"] == (0.3, 3.0)


def test_stages_follow_each_other_and_a_shorter_search_leaves_out_the_last():
    stages = rhythm_tuning.STAGES
    whole = Search().plan()
    assert [stage for stage, begins in whole if begins] == list(stages)
    assert len(whole) == Search().generations == sum(stage.generations for stage in stages)
    assert Search(generations=stages[0].generations + 1).plan() == whole[: stages[0].generations + 1]
    assert [stage.care for stage in stages] == ["rough", "usual", "usual", "thorough"]


def test_a_stage_begins_at_the_mean_of_the_one_before(tmp_path, monkeypatch):
    short = tuple(replace(stage, generations=3) for stage in rhythm_tuning.STAGES[:2])
    monkeypatch.setattr(rhythm_tuning, "STAGES", short)
    begun = []

    class Watched(rhythm_tuning.cmaes.CMA):
        def __init__(self, mean, sigma, **more):
            begun.append((mean.copy(), sigma, self))
            super().__init__(mean=mean, sigma=sigma, **more)

    monkeypatch.setattr(rhythm_tuning.cmaes, "CMA", Watched)
    run(tmp_path, Search(**(vars(TINY) | {"generations": 6})))
    (first, *_), (second, _, _) = begun
    assert [sigma for _, sigma, _ in begun] == [stage.step for stage in short]
    assert np.array_equal(first, search_space(released_numbers()).initial)
    assert np.array_equal(second, begun[0][2].mean)
    assert not np.array_equal(first, second)


def test_the_command_writes_numbers_and_a_table_that_other_commands_take(tmp_path, capsys):
    cli.main(["tune-rhythm", "--out", str(tmp_path), "--generations", "1", "--workers", "1"])
    numbers = json.loads((tmp_path / "rhythm.json").read_text())
    spec = load_circuit(tmp_path / "circuit.json")
    assert spec.rhythm().without(["late_flexor", "late_extensor"]) == respecified(numbers)
    assert sum(entry.row.trainable for entry in spec.entries) == 112  # afferents and motor neurons are there as well
    capsys.readouterr()
    cli.main(["rhythm", "--circuit", str(tmp_path / "circuit.json"), "--commands", "0.5", "--states", "1", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["command"] == 0.5


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--workers", "0"], "at least one worker is needed, not 0"),
        (["--generations", "0"], "a search needs at least one generation, not 0"),
        (["--generations", "511"], "a search has up to 510 generations, not 511"),
        (["--seed", "-1"], "a seed is a number from 0 on, not -1; the largest is 2^63 - 1"),
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
    default, released = preset_numbers("default"), released_numbers()
    losses = [sum(rhythm_tuning.objective(numbers, 4, (0, 1)).values()) for numbers in (default, released)]
    assert losses[0] < 0.2 * losses[1]
    assert np.isfinite(losses).all()
