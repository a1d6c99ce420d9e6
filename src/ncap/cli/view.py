"""Commands that show a policy: a live page, a replay to keep, a video."""

import os
import signal
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import tyro

from ncap.cli.app import OutFile, Seed, app
from ncap.cli.choice import Body, BodyWords, Brain, BrainWords, chosen
from ncap.errors import UserError

if TYPE_CHECKING:
    from ncap.recording import Recording

USUAL: Final = 12.0
"""Time for which wanted speeds are played, s."""
_OWN_BRAIN, _OWN_BODY = Brain(), Body()
"""What a policy has of its own, unless told otherwise."""


@app.command
def watch(
    policy: Annotated[str, tyro.conf.Positional] = "ncap-drive",
    brain: BrainWords = _OWN_BRAIN,
    body: BodyWords = _OWN_BODY,
    ghost: str | None = None,
    seed: Seed = 0,
    host: str = "127.0.0.1",
    port: int = 8080,
    plain: bool = False,
    open: bool = False,
    tour: bool = True,
) -> None:
    """Watch a policy live in a browser: its robot in 3-D, its circuit, its footfalls, and controls for all of them.

    By default it is the circuit that can be driven: keys I and K change its speed, J and L turn it, space makes it
    stand. Ctrl-C ends it. Nothing is simulated while no tab is open. Knock-outs can be healed, and others added, on the
    page.

    Args:
        policy: zero, random, untrained, a shipped one such as ncap-flat-walk, a run directory (its best) or a file.
        brain: Another circuit, knock-outs and command.
        body: Task and robot.
        ghost: Another policy, whose robot walks beside as a ghost.
        seed: Seed of the first episode.
        host: Address to listen on. 0.0.0.0 lets every machine of the network in, and there is no password.
        port: Port to listen on; the next free one if it is taken.
        plain: Without shadows, for computers whose browser has no graphics card.
        open: Also open the page in the browser of this computer.
        tour: Offer the first visitor a short tour of the page.

    """
    from ncap.cli.terminal import names_in
    from ncap.view.session import Session
    from ncap.view.web import Page, choices

    whole, task = chosen(policy, replace(brain, without=()), body)
    session = Session(task, whole, ghost=ghost, without=names_in(brain.without), seed=seed)
    page = Page(session, choices(policy, ghost), host=host, port=port, plain=plain, tour=tour)
    before = signal.signal(signal.SIGINT, lambda *_: page.stop())
    print(f"watch: {page.address}   (Ctrl-C ends it)", flush=True)
    if open and _has_display():
        webbrowser.open(page.address)
    try:
        page.run()
    finally:
        signal.signal(signal.SIGINT, before)
        page.close()
    raise SystemExit(130)


def _has_display() -> bool:
    """Whether a browser would have a window: without one, text browsers would take the terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


@app.command
def replay(
    policy: Annotated[str, tyro.conf.Positional],
    brain: BrainWords = _OWN_BRAIN,
    body: BodyWords = _OWN_BODY,
    seed: Seed = 0,
    out: OutFile = Path("walk.html"),
) -> None:
    """Write an episode as one HTML file: the motion in 3-D, footfalls, neurons and circuit on one time line.

    The file needs no network and no ncap: send it to anybody.

    Args:
        policy: A policy as for `ncap evaluate`, a run directory (its best), a recording, or the folder of a flight.
        brain: Another circuit, knock-outs and command; a recording has its own.
        body: Task and robot; a recording has its own.
        seed: Seed of the episode; a recording has its own.
        out: Page to write.

    """
    from ncap.view.replay import write_replay

    write_replay(_recording(policy, brain, body, seed), out)
    print(f"replay: {out}")


@app.command
def video(
    policy: Annotated[str | None, tyro.conf.Positional] = None,
    compare: tuple[str, str] | None = None,
    brain: BrainWords = _OWN_BRAIN,
    body: BodyWords = _OWN_BODY,
    seed: Seed = 0,
    seconds: float | None = None,
    speeds: tuple[float, ...] = (),
    out: OutFile = Path("walk.mp4"),
) -> None:
    """Write an episode as a video: robot, footfalls and circuit side by side. The same words give the same frames.

    Examples: `ncap video untrained`, `ncap video --compare untrained ncap-flat-walk --out both.mp4`,
    `ncap video ncap-drive --speeds 0.3 0.65 --seconds 9 --out walk.webp`.

    Args:
        policy: A policy as for `ncap evaluate`, a run directory (its best), a recording, or the folder of a flight.
        compare: Two of them, side by side.
        brain: Another circuit, knock-outs and command; a recording has its own.
        body: Task and robot; a recording has its own.
        seed: Seed of the episode; a recording has its own.
        seconds: Only the first seconds.
        speeds: Speeds in m/s that a policy that can be driven is wanted to have, one after the other, for equal times.
        out: Video (.mp4) or animation (.webp, .gif) to write. An animation has half the size, and half the pictures.

    """
    from ncap.cli.terminal import progress_bar
    from ncap.view.video import check_name, length, write_video

    if seconds is not None and not 0 < seconds < float("inf"):
        raise UserError(f"a video shows a number of seconds above 0, not {seconds:g}")
    names = compare or ((policy,) if policy else ())
    if not names or (compare and policy):
        raise UserError("give either one policy, or two with --compare A B")
    check_name(out)
    if speeds:
        from ncap.view.scripted import scripted

        players = [chosen(name, brain, body) for name in names]
        recordings = [scripted(player, task, speeds, seconds or USUAL, seed) for player, task in players]
    else:
        recordings = [_recording(name, brain, body, seed) for name in names]
    with progress_bar() as progress:
        line = progress.add_task("frames", total=length(recordings, seconds))
        write_video(recordings, out, seconds, lambda: progress.advance(line))
    print(f"video: {out}")


def _recording(name: str, brain: Brain, body: Body, seed: int) -> "Recording":
    """The recording in a file, or an episode of a policy, played now."""
    from ncap.recording import Recording, record, recording_at

    if file := recording_at(Path(name)):
        if brain != _OWN_BRAIN or body != _OWN_BODY:
            raise UserError(f"{name} is a recording, which has its own circuit, task and robot")
        return Recording.load(file)
    return record(*chosen(name, brain, body), seed)
