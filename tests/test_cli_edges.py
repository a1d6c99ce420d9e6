"""What no command accepts: one sentence and exit code 2, nothing written, nothing allocated, no waiting.

Every case runs in a folder with some hostile inhabitants, under a limit of time and memory.
"""

import os
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot  # noqa: F401 - what commands import must not count as their memory
import pytest
import scipy.stats  # noqa: F401

from ncap import cli, rollouts  # noqa: F401
from ncap.cli.app import LONGEST_WORD

LIMIT_SECONDS = 8.0
LIMIT_BYTES = 2**30
STAND_INS = {
    "TOO_LONG": "n" * 300,  # for a file system, but not for the command line
    "LONG": "n" * 5000,
    "NUL": "\0",
    "BREAK": "\n",
}

#: After the command's name, words as in a shell, with the stand-ins above.
CASES = {
    "rhythm": """
        --seed -1
        --seed 9999999999999999999
        --seed 0.5
        --seed x
        --states 0
        --states -3
        --states 1000000000
        --states 1e9
        --commands 0:1:1e-9
        --commands 0:1:1e-12
        --commands 0:1:0
        --commands 0:1:-0.1
        --commands 1:0:0.1
        --commands 0:inf:1
        --commands 0:1:nan
        --commands nan
        --commands inf
        --commands -0.1
        --commands 1.0001
        --commands 1e9
        --commands fast
        --commands 0:1
        --commands 0:1:0.1:2
        --commands ,
        --commands ''
        --circuit ''
        --circuit mouse
        --circuit none.json
        --circuit fifo.json
        --circuit folder.json
        --circuit empty.json
        --circuit /dev/null
        --circuit LONG
        --circuit TOO_LONG.json
        --circuit aNULb.json
        --without V7
        --without ''
        --without flexor.XX
        --without LONG
        --out ''
        --out .
        --out folder.png
        --out fifo.png
        --out /dev/null
        --out /dev/null/x.png
        --out LONG.png
        --out TOO_LONG.png
        --out aNULb.png
        --out picture.doc
        --out picture
        --unknown 1
        stray
    """,
    "circuit": """
        --circuit ''
        --circuit horse
        --circuit none.json
        --circuit fifo.json
        --circuit text.json
        --without brain
        --without V0,V9
        --save ''
        --save .
        --save table.txt
        --save folder.json
        --save fifo.json
        --save /dev/null/x.json
        --save TOO_LONG.json
        --out ''
        --out circuit
        --out folder.svg/x.txt
        --out LONG.svg
        --dot maybe
    """,
    "export": """
        untrained
        horse --onnx
        zero --onnx
        random --onnx
        ncap-swim --onnx
        untrained --onnx --out ''
        untrained --onnx --out walk.pb
        untrained --onnx --out folder.onnx/x
        untrained --onnx --out /dev/null/x.onnx
        untrained --onnx --out TOO_LONG.onnx
        untrained --onnx --robot horse
        untrained --onnx --task horse
        untrained --onnx --without V7
        text.zip --onnx
    """,
    "units": """
        --out ''
        --out .
        --out units.doc
        --out folder.png
        --out fifo.png
        --out /dev/null/x.png
        --out TOO_LONG.png
        --out LONG.png
        --out aNULb.png
        --seed 0
    """,
    "tune-rhythm": """
        --generations 1
        --out ''
        --out .
        --out ..
        --out /
        --out /dev/null/x
        --out fifo
        --out empty.json
        --out LONG
        --out TOO_LONG
        --out new --seed -1
        --out new --seed nan
        --out new --generations 0
        --out new --generations -1
        --out new --generations 1000000000
        --out new --workers 0
        --out new --workers -2
        --out new --workers 100000
    """,
    "train": """
        ''
        fly
        none.py
        fifo.py
        folder.py
        LONG
        --vary-kp 1
        --vary-kd nan
        --seed -1
        --seed 99999999999999999999999
        --seed 1.5
        --epochs 0
        --epochs -5
        --epochs 1000000000000
        --threads 0
        --threads -1
        --threads 100000
        --sigma inf
        --sigma nan
        --sigma 0
        --sigma -1
        --target-speed inf
        --target-speed nan
        --target-speed 0
        --target-speed -1
        --target-speed fast
        --command nan
        --command inf
        --command -0.1
        --command 1.1
        --training-seconds 1e9
        --training-seconds nan
        --training-seconds inf
        --training-seconds 0
        --training-seconds -1
        --training-seconds 0.001
        --episode-seconds nan
        --episode-seconds inf
        --episode-seconds 0
        --episode-seconds 1e9
        --population 0
        --population 1
        --population -4
        --population 1000000000
        --episodes 0
        --episodes 100000000
        --algorithm ''
        --algorithm sarsa
        --algorithm ppo --environments 0
        --algorithm ppo --environments 1000000000
        --algorithm ppo --sigma 1
        --algorithm d4pg --policy ncap
        --policy ''
        --policy horse
        --policy mlp:99999x99999
        --policy mlp:0x4
        --policy mlp:-4x4
        --policy mlp:x
        --policy mlp:4x
        --policy mlp:64.5
        --policy ncap:8
        --policy mlp --without V0
        --circuit none.json
        --circuit fifo.json
        --without V9
        --trainable XX
        --robot spot
        --robot ''
        --robot none.json
        --robot fifo.json
        --robot folder.json
        --robot none.py
        --start horse
        --start fifo.safetensors
        --start mlp-flat-run
        --contact soft
        --contact ''
        --preset mine
        --out ''
        --out .
        --out ..
        --out /dev/null/x
        --out empty.json
        --out fifo
        --out LONG
        --out TOO_LONG
        --out aNULb
        --cluster ''
        --cluster nowhere
        --cluster :6379
        --cluster 127.0.0.1:0
        --cluster 127.0.0.1:70000
        --cluster 127.0.0.1:1
        --cluster ray://127.0.0.1:1
        --cluster local --algorithm ppo
        --resume ''
        --resume folder
        --resume none
        --resume empty.json
        --resume fifo
        --resume LONG
        --resume TOO_LONG
    """,
    "params": "stray\n--json maybe",
    "evaluate": """
        ''
        horse
        fifo.safetensors
        folder.safetensors
        folder
        empty.safetensors
        text.json
        /dev/null
        /dev/zero
        LONG
        TOO_LONG
        aNULb
        lineBREAKline
        zero --seed -1
        zero --seed 1e3
        zero --episodes 0
        zero --episodes -1
        zero --episodes 100000000
        zero --threads 0
        zero --threads -1
        zero --threads 1000000
        zero --kp 0
        zero --kp nan
        zero --kd -1
        zero --kd inf
        zero --task ''
        zero --task fly
        zero --task none.py
        zero --task fifo.py
        zero --task folder.py
        zero --task empty.py
        zero --task broken.py
        zero --robot spot
        zero --robot ''
        zero --robot fifo.json
        zero --robot text.json
        zero --contact soft
        zero --without V0
        zero --command 0.5
        untrained --command nan
        untrained --command inf
        untrained --command 1.5
        untrained --command ''
        untrained --circuit fifo.json
        untrained --circuit none.json
        untrained --without V7
        mlp-flat-run --without V0v
        zero --json maybe
    """,
    "lesion": """
        untrained
        untrained --without ''
        untrained --without ,
        untrained --without V7
        horse --without V0
        '' --without V0
        zero --without V0
        mlp-flat-run --without V0
        fifo.safetensors --without V0
        untrained --without V0 --seed -1
        untrained --without V0 --episodes 0
        untrained --without V0 --episodes 100000000
        untrained --without V0 --threads 0
        untrained --without V0 --threads -1
        untrained --without V0 --commands nan
        untrained --without V0 --commands 2
        untrained --without V0 --commands 0:1:1e-9
        untrained --without V0 --task ''
        untrained --without V0 --task fly
        untrained --without V0 --robot spot
        untrained --without V0 --circuit none.json
        untrained --without V0 --out ''
        untrained --without V0 --out .
        untrained --without V0 --out lesion.doc
        untrained --without V0 --out /dev/null/x.png
    """,
    "report": """
        ''
        none
        fifo
        empty.json
        LONG
        TOO_LONG
        folder
        folder --threads 0
        folder --threads -1
        folder --out ''
        folder --out .
        folder --out folder.png
        folder --out /dev/null/x.html
        folder --out TOO_LONG.html
    """,
    "reproduce": """
        everything
        ''
        LONG
        gaits --scale tiny
        gaits --scale ''
        gaits --threads 0
        gaits --threads -1
        gaits --seeds 0
        gaits --seeds -1
        gaits --seeds 1000000000
        gaits --tasks fly
        gaits --tasks ''
        weights --tasks bumpy-run
        gaits --out ''
        gaits --out .
        gaits --out /dev/null/x
        gaits --out empty.json
        gaits --out TOO_LONG
        bodies --robot spot
        bodies --robot ''
        bodies --robot none.json
        gaits --robot go2
        gaits --cluster ''
        gaits --cluster 127.0.0.1:1
        gaits --cluster somewhere
    """,
    "watch": """
        ''
        horse
        fifo.safetensors
        LONG
        zero --host ''
        zero --host 'not a host'
        zero --host LONG
        zero --host 'hôte'
        zero --port 0
        zero --port -1
        zero --port 70000
        zero --port http
        zero --seed -1
        zero --ghost ''
        zero --ghost horse
        zero --ghost fifo.safetensors
        zero --task ''
        zero --task fly
        zero --robot spot
        untrained --command nan
        untrained --without V7
    """,
    "replay": """
        ''
        horse
        fifo.safetensors
        folder
        empty.safetensors
        LONG
        zero --seed -1
        zero --task ''
        zero --task fly
        zero --robot spot
        zero --out ''
        zero --out .
        zero --out fifo
        zero --out /dev/null/x.html
        zero --out TOO_LONG.html
        untrained --command nan
        untrained --without V7
    """,
    "video": """
        ''
        --compare zero
        zero --compare zero random
        horse
        fifo.safetensors
        zero --seed -1
        zero --seconds nan
        zero --seconds inf
        zero --seconds 0
        zero --seconds -1
        zero --seconds long
        zero --task ''
        zero --task fly
        zero --out ''
        zero --out .
        zero --out walk.avi
        zero --out fifo.mp4
        zero --out folder.mp4
        zero --out /dev/null/x.mp4
        zero --out TOO_LONG.mp4
        untrained --command nan
    """,
    "deploy": """
        zero
        '' --link twin
        horse --link twin
        random --link twin
        fifo.safetensors --link twin
        zero --link ''
        zero --link serial
        zero --link lcm://239.255.76.67:0
        zero --link lcm://239.255.76.67:70000
        zero --link lcm://nowhere:1
        zero --link lcm://239.255.76.67:7667?ttl=x
        zero --link lcm://239.255.76.67:7667?ttl=-1
        zero --link LONG
        zero --link go1://300.1.1.1
        zero --link go1://robot
        zero --link twin --limp
        zero --link twin --seconds 0
        zero --link twin --seconds -1
        zero --link twin --seconds nan
        zero --link twin --seconds inf
        zero --link twin --seed -1
        zero --link twin --robot spot
        zero --link twin --robot ''
        zero --link twin --robot text.json
        zero --link twin --out ''
        zero --link twin --out empty.json
        zero --link twin --out /dev/null/x
        zero --link twin --out TOO_LONG
        untrained --link twin --command nan
        untrained --link twin --command 2
        untrained --link twin --without V7
    """,
    "twin": """
        --robot spot
        --robot ''
        --robot fifo.json
        --link ''
        --link serial
        --link lcm://239.255.76.67:0
        --link lcm://239.255.76.67:70000
        --link lcm://127.0.0.1:7667
        --seed -1
        --seconds nan
        --seconds inf
        --seconds 0
        --seconds -1
        --mass 0
        --mass nan
        --mass -1
        --friction inf
        --latency -1
        --latency nan
        --loss 1.5
        --loss nan
        --noise -1
        --gains 0
        --strength inf
        --fault silence
        --fault silence@nan
        --fault silence@inf
        --fault silence@-1
        --fault sneeze@1
        --fault @1
        --fault ''
    """,
    "flight": """
        ''
        none
        folder
        fifo
        empty.json
        LONG
        TOO_LONG
    """,
    "bench": "stray\n--json maybe\n--seed 1\n--robot spot\n--robot none.json",
    "doctor": "stray\n--json maybe\n--seed 1",
}


def cases():
    found = []
    for command, lines in CASES.items():
        for line in filter(None, map(str.strip, lines.splitlines())):
            words = shlex.split(line)
            for name, meant in STAND_INS.items():
                words = [word.replace(name, meant) for word in words]
            found.append(pytest.param([command, *words], id=f"{command} {line}"))
    return found


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A working directory with things of the wrong kind."""
    for name in ("folder", "folder.json", "folder.png", "folder.svg", "folder.py", "folder.mp4", "folder.safetensors"):
        (tmp_path / name).mkdir()
    for name in ("fifo", "fifo.json", "fifo.png", "fifo.py", "fifo.mp4", "fifo.safetensors"):
        os.mkfifo(tmp_path / name)
    for name in ("empty.json", "empty.py", "empty.safetensors"):
        (tmp_path / name).touch()
    (tmp_path / "text.json").write_text("[1, 2")
    (tmp_path / "broken.py").write_text("raise ValueError('on purpose')")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(folder):
    return {
        path.relative_to(folder): path.stat().st_size if path.is_file() else None for path in sorted(folder.rglob("*"))
    }


def _used_bytes():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


@pytest.fixture
def limits():
    """Ctrl-C after some seconds, and no more than a gigabyte of further memory."""
    usual = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_used_bytes() + LIMIT_BYTES, usual[1]))
    signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    resource.setrlimit(resource.RLIMIT_AS, usual)


@pytest.mark.parametrize("words", cases())
def test_what_makes_no_sense_is_refused_in_a_sentence(words, hostile, limits, capsys):
    before = tree(hostile)
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    out, err = capsys.readouterr()
    assert stop.value.code == 2, err
    assert out == "" or words[0] == "deploy"  # which first says whether it will send anything
    assert "Traceback" not in err
    if err.startswith("ncap: error: "):
        assert err.count("\n") == 1
        assert len(err) < 1000
    else:
        assert "For full helptext, " in err  # the parser's own words about words that it does not know
    assert tree(hostile) == before


def test_there_are_enough_cases_and_every_command_has_some():
    assert len(cases()) >= 150
    assert set(CASES) == set(cli.app._subcommands)


def test_a_word_that_is_no_text_is_refused(capsys):
    with pytest.raises(SystemExit):
        cli.main(["evaluate", "zero", "--task", os.fsdecode(b"\xff\xfe")])
    assert capsys.readouterr().err == "ncap: error: '--task' is no text in UTF-8: '\\udcff\\udcfe'\n"


EARLY = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["ncap", "rhythm", "--commands", "0.5", "--states", "1"]
from ncap.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "module", ["ncap.cli", "tyro", "numpy", "numpy._core.multiarray", "mujoco", "matplotlib.pyplot", "rich.progress"]
)
def test_ctrl_c_while_modules_are_loaded_says_nothing(module, tmp_path):
    program = [sys.executable, "-c", EARLY.format(module=module)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode in (130, -signal.SIGINT)
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_behind_standard_output_is_a_sentence():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ncap", "params"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "ncap: error: No space left on device\n"


def test_the_longest_word_is_longer_than_any_path():
    assert os.pathconf("/", "PC_PATH_MAX") <= LONGEST_WORD
