"""One commander per robot, and a fault that stays until a person rearms: whatever becomes of process and file."""

import os
import stat
import subprocess
import sys

import pytest

from ncap.deploy import lock as locks
from ncap.deploy.lock import CommanderLock, state_folder
from ncap.errors import UserError


def test_a_second_commander_is_refused_and_a_fault_stays_until_a_person_rearms(tmp_path):
    with CommanderLock("udpm://x", rearm=False, folder=tmp_path) as first:
        with pytest.raises(UserError, match="another process commands the robot"):
            CommanderLock("udpm://x", rearm=True, folder=tmp_path)
        with pytest.raises(UserError, match="another process commands the robot"):
            CommanderLock("udpm://x?ttl=1", rearm=True, folder=tmp_path)  # the same robot, reached from further away
        CommanderLock("udpm://y", rearm=False, folder=tmp_path).__exit__()  # another robot
        first.latch("tilt: roll or pitch is 50°")
    with pytest.raises(UserError, match=r"ended with a fault \(tilt: roll or pitch is 50°\).*--rearm"):
        CommanderLock("udpm://x", rearm=False, folder=tmp_path)
    CommanderLock("udpm://x", rearm=True, folder=tmp_path).__exit__()
    CommanderLock("udpm://x", rearm=False, folder=tmp_path).__exit__()


def test_the_lock_lies_in_a_folder_of_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a" / "b"))
    with CommanderLock("twin", rearm=False) as lock:
        assert lock.path == tmp_path / "a" / "b" / "ncap" / "robot-twin.lock"
        assert stat.S_IMODE(lock.path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(lock.path.stat().st_mode) == 0o600
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "ncap"


def test_a_symbolic_link_in_its_place_is_refused_and_what_it_points_to_is_left_alone(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "locks"
    folder.mkdir(0o700)
    (folder / "robot-twin.lock").symlink_to(victim)
    with pytest.raises(UserError, match=r"cannot lock .*robot-twin\.lock"):
        CommanderLock("twin", rearm=True, folder=folder)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path), lambda path: path.mkdir()])
def test_anything_but_a_regular_file_is_refused_without_waiting(tmp_path, make):
    make(tmp_path / "robot-twin.lock")
    with pytest.raises(UserError, match=r"robot-twin.lock"):
        CommanderLock("twin", rearm=True, folder=tmp_path)


def test_a_folder_that_others_may_write_into_is_refused(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UserError, match="others may write into"):
        CommanderLock("twin", rearm=True, folder=folder)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot lock .*set XDG_STATE_HOME"):
        CommanderLock("twin", rearm=True, folder=tmp_path / "file" / "folder")


@pytest.mark.parametrize("content", [b"\xff\xfe\0garbage", b"x" * 10_000_000])
def test_a_damaged_file_is_a_fault_until_a_person_rearms(tmp_path, content):
    (tmp_path / "robot-twin.lock").write_bytes(content)
    with pytest.raises(UserError, match="ended with a fault") as refused:
        CommanderLock("twin", rearm=False, folder=tmp_path)
    assert len(str(refused.value)) < 1200
    CommanderLock("twin", rearm=True, folder=tmp_path).__exit__()
    assert (tmp_path / "robot-twin.lock").read_bytes() == b""


def test_on_a_full_disk_an_older_fault_remains(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with CommanderLock("twin", rearm=False, folder=tmp_path) as lock:
        lock.latch("its program ended in flight")
        monkeypatch.setattr(locks.os, "pwrite", full)
        with pytest.raises(UserError, match="No space left on device"):
            lock.latch("tilt: roll or pitch is 50°")
    assert lock.path.read_text() == "its program ended in flight"


KILLED = """
import os, signal, sys
from pathlib import Path
from ncap.deploy import loop, session
from ncap.deploy.flight_plan import FlightPlan
from ncap.trained import load
def report(line):
    if line == "phase " + sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
schedule = loop.Schedule(calibration=0.2, low=0.1, stand=0.1, hold=0.1, policy=0.1, halt=0.1, sit=0.1, damping=0.1)
session.fly(load("zero"), FlightPlan(link="twin", arm=True, out=Path(sys.argv[1])), report, schedule)
"""


@pytest.mark.parametrize(("phase", "refused"), [("calibration", False), ("policy", True), ("damping", True)])
def test_after_kill_9_in_flight_the_next_commander_needs_a_person(tmp_path, phase, refused):
    process = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "flight"), phase])
    assert process.returncode == -9
    if refused:
        with pytest.raises(UserError, match=r"ended with a fault \(its program ended in flight\).*--rearm"):
            CommanderLock("twin", rearm=False)
        CommanderLock("twin", rearm=True).__exit__()
    CommanderLock("twin", rearm=False).__exit__()  # before the first command nothing had happened
