"""Commands that let you see it: a live page, a replay to keep, a video."""

from pathlib import Path
from typing import Annotated

import tyro

from ncap.cli.app import app


@app.command
def watch(
    policy: Annotated[str, tyro.conf.Positional] = "ncap-flat-walk",
    task: str = "flat-walk",
    ghost: str | None = None,
    seed: int = 0,
    host: str = "127.0.0.1",
    port: int = 8080,
    plain: bool = False,
) -> None:
    """Watch a robot think, live in a browser: its body in 3-D, its circuit, its footfalls, and controls for all of it.

    Ctrl-C ends it. Nothing is simulated while no tab is open.

    Args:
        policy: zero, random, untrained, a shipped one such as ncap-flat-walk, a run directory (its best) or a file.
        task: flat-walk, flat-run, bumpy-walk or bumpy-run.
        ghost: Another policy that walks beside as a ghost.
        seed: Seed of the episode.
        host: Address to listen on. 0.0.0.0 lets every machine of the network in, and there is no password.
        port: Port to listen on; the next free one if it is taken.
        plain: Without shadows, for computers whose browser has no graphics card.

    """
    from ncap.tasks import find_task
    from ncap.view.session import Session
    from ncap.view.web import Page, choices

    session = Session(find_task(task), policy, ghost=ghost, seed=seed)
    page = Page(session, choices(policy, ghost), host=host, port=port, plain=plain)
    print(f"watch: {page.address}   (Ctrl-C ends it)", flush=True)
    try:
        page.run()
    finally:
        page.close()


@app.command
def replay(
    policy: Annotated[str, tyro.conf.Positional],
    task: str = "flat-walk",
    seed: int = 0,
    out: Path = Path("walk.html"),
) -> None:
    """Write an episode as one HTML file: the motion in 3-D, footfalls, neurons and circuit on one time line.

    The file needs no network and no ncap: send it to anybody.

    Args:
        policy: A policy as for `ncap evaluate`, a run directory (its best), or a recording.
        task: The task to play; a recording has its own.
        seed: Seed of the episode; a recording has its own.
        out: Page to write.

    """
    from ncap.view.replay import find_recording, write_replay

    write_replay(find_recording(policy, task, seed), out)
    print(f"replay: {out}")


@app.command
def video(
    policy: Annotated[str | None, tyro.conf.Positional] = None,
    compare: tuple[str, str] | None = None,
    task: str = "flat-walk",
    seed: int = 0,
    seconds: float | None = None,
    out: Path = Path("walk.mp4"),
) -> None:
    """Write an episode as a video: robot, footfalls and circuit side by side. The same words give the same frames.

    Examples: `ncap video untrained`, `ncap video --compare untrained ncap-flat-walk --out both.mp4`.

    Args:
        policy: A policy as for `ncap evaluate`, a run directory (its best), or a recording.
        compare: Two of them, side by side.
        task: The task to play; a recording has its own.
        seed: Seed of the episode; a recording has its own.
        seconds: Only the first seconds.
        out: Video to write (mp4).

    """
    from ncap.errors import UserError
    from ncap.terminal import progress_bar
    from ncap.view.replay import find_recording
    from ncap.view.video import length, write_video

    names = compare or ((policy,) if policy else ())
    if not names or (compare and policy):
        raise UserError("give either one policy, or two with --compare A B")
    recordings = [find_recording(name, task, seed) for name in names]
    with progress_bar() as progress:
        line = progress.add_task("frames", total=length(recordings, seconds))
        write_video(recordings, out, seconds, lambda: progress.advance(line))
    print(f"video: {out}")
