"""The live page: a session in 3-D beside its circuit, in any number of browser tabs.

One thread, that of `run`, owns the session. viser's threads only leave in the panel what visitors ask for.
"""

import re
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.extras import missing_extra
from ncap.trained import shipped_policies
from ncap.view import instruments
from ncap.view.diagram import Diagram, brightness
from ncap.view.drawing import Drawing
from ncap.view.filming import Films
from ncap.view.looks import STYLE, look_over, set_stage
from ncap.view.panel import CLICK, Panel
from ncap.view.replay import replay_page
from ncap.view.session import Session
from ncap.view.stage import offered_robots, offered_tasks
from ncap.view.tour import Tour
from ncap.view.traces import PAIRS

Array = NDArray[np.float64]

LIGHTS_EVERY: Final = 0.06
"""Real time between two pictures of the circuit's activity, s."""
INSTRUMENTS_EVERY: Final = 0.12
"""Real time between two updates of strips and numbers, s."""
BACKLOG: Final = 0.25
"""Real time by which the simulation may be late before the lost time is given up, s."""
FILMS_EVERY: Final = 0.5
"""Real time between two looks at a video that is being made, s."""
REFUSALS_EVERY: Final = 10.0
"""Real time between two lines about visitors who were refused, s."""
LONGEST_REASON: Final = 200
"""Characters of an unforeseen error that are kept."""


class Page:
    """A page that shows a session and does what its visitors ask for."""

    def __init__(
        self,
        session: Session,
        policies: Sequence[str],
        *,
        host: str,
        port: int,
        plain: bool = False,
        tour: bool = False,
    ) -> None:
        """plain: without shadows. tour: begin with a tour for the first visitor."""
        try:
            import viser

            from ncap.view.door import Door
        except ImportError:
            raise missing_extra("the live page", "view") from None
        self.session, self.stopping = session, False
        self.door = Door(host, port)
        self._told = self._looked = time.perf_counter()
        self._films = Films()
        with redirect_stdout(StringIO()), self.door.around(viser.__version__):  # viser prints a long greeting
            self._server: Any = viser.ViserServer(host=host, port=self.door.port, label="ncap", verbose=False)
        self.address = self.door.address
        gui = self._server.gui
        gui.configure_theme(dark_mode=True, show_logo=False, show_share_button=False, brand_color=(255, 190, 70))
        gui.add_html(STYLE)
        self._numbers = gui.add_html("")
        menus = {
            "policy": policies,
            "task": offered_tasks(session.controls.task),
            "robot": offered_robots(session.controls.robot),
        }
        self._panel = Panel(gui, session.controls, session.ranges, menus)
        self._tour = Tour(gui, self._panel.order)
        circuit = gui.add_panel()
        with circuit.add_tab("The circuit"):
            self._panel.add_click_field(gui)
            self._wiring, self._light, self._strip, self._traces = (
                gui.add_html("") for _ in ("wiring", "light", "strip", "traces")
            )
        circuit.dock_left()
        circuit.set_width(470)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(340)
        set_stage(self._server, plain=plain)
        self._drawing = Drawing(self._server, session)
        self._draw_wiring()
        self._drawing.move()
        self._publish()
        if tour:
            self._tour.begin()
        self.door.open(self._server)

    def _draw_wiring(self) -> None:
        brain = self.session.brain
        if brain.table is None:
            self._wiring.content = instruments.nothing_to_show(brain.name)
            self._light.content = self._traces.content = ""
        else:
            drawing = Diagram(brain.table, brain.numbers).svg(brain.without, on_click=CLICK)
            self._wiring.content = drawing + instruments.KEY

    def run(self, seconds: float = float("inf")) -> None:
        """Simulate and show for this long, s, in real time times the pace; without an open tab, time stands still."""
        session = self.session
        begin = due = time.perf_counter()
        lit = read = begin
        dark = late = True  # whether the circuit, and whether the instruments have yet to show the last step
        while (now := time.perf_counter()) - begin < seconds and not self.stopping:
            if self._obey():
                dark = late = True
            period = session.control_dt / session.controls.pace
            if session.controls.paused or not self._server.get_clients():
                due = now + period
                time.sleep(0.02)
            elif now >= due:
                session.step()
                due = max(due + period, now - BACKLOG)
                self._drawing.move()
                dark = late = True
            if dark and now - lit > LIGHTS_EVERY:
                lit, dark = now, False
                self._light_up()
            if late and now - read > INSTRUMENTS_EVERY:
                read, late = now, False
                self._publish()
            self._drawing.end_push(now)
            if now - self._looked > FILMS_EVERY:
                self._looked = now
                self._films.look(list(self._server.get_clients().values()))
            if now - self._told > REFUSALS_EVERY:
                self._tell_refusals()
            time.sleep(max(0.0, min(due - time.perf_counter(), 0.01)))

    def stop(self) -> None:
        """End `run` after the step that it does now. An exception in the middle of one could leave viser locked."""
        self.stopping = True

    def close(self) -> None:
        """Stop serving."""
        self._films.close()
        with redirect_stdout(StringIO()):
            self._server.stop()
        self._tell_refusals()

    def _tell_refusals(self) -> None:
        self._told = time.perf_counter()
        if line := self.door.refused.line():
            print(f"watch: {line}", file=sys.stderr, flush=True)

    def _obey(self) -> bool:
        """Do what visitors asked for; False if they asked for nothing."""
        wishes, orders = self._panel.taken()
        if not wishes and not orders:
            return False
        session, before, circuit = self.session, self.session.controls, self.session.brain.table
        try:
            if wishes:
                session.change(**wishes)
            for kind, what in orders:
                self._execute(kind, what)
        except UserError as error:
            self._say_no(str(error))
        except Exception as error:  # whatever a visitor asked for, the page goes on for the others
            self.door.refused.count(f"wish that failed, {type(error).__name__}: {error}"[:LONGEST_REASON])
            self._say_no(f"something failed ({type(error).__name__})")
        after = session.controls
        if (before.policy, before.without, circuit) != (after.policy, after.without, session.brain.table):
            self._draw_wiring()
        while session.news:
            self._tell("Another world", session.news.pop(0), "yellow")
        obeyed = all(getattr(after, name) == value for name, value in wishes.items())
        if not (obeyed and len(wishes) == 1 and not wishes.keys() & {"policy", "without", "task", "robot"}):
            self._panel.show(after, session.ranges)  # while a single slider is dragged, nothing is sent back to it
        self._drawing.move()
        return True

    def _say_no(self, reason: str) -> None:
        self._tell("Not possible", reason, "red")

    def _tell(self, title: str, text: str, colour: str) -> None:
        for client in self._server.get_clients().values():
            client.add_notification(title, text, color=colour, auto_close_seconds=6.0)

    def _save(self, visitor: int, kind: str) -> None:
        """Send a visitor the last seconds: as a replay now, as a video when it is drawn."""
        client = self._server.get_clients().get(visitor)
        if client is None:
            return
        name = re.sub(r"[^\w.-]+", "-", Path(self.session.controls.policy).name).strip("-.") or "walk"
        recording = self.session.recording()
        if kind == "video":
            self._films.begin(recording, client, f"{name}.mp4")
        else:
            client.send_file_download(f"{name}.html", replay_page(recording), save_immediately=True)

    def _execute(self, kind: str, what: Any) -> None:
        session = self.session
        without = session.controls.without
        if kind == "push":
            session.push(*what)
            self._drawing.show_push(*what)
        elif kind == "key":
            session.press(*what)
        elif kind == "click":
            session.click(what)
        elif kind == "silence":
            session.change(without=(*(name for name in without if name != what), what))
        elif kind == "heal":
            session.change(without=tuple(name for name in without if name != what))
        elif kind in ("save", "video"):
            self._save(what, kind)
        elif kind == "tour":
            self._tour.turn(what)
        elif kind == "course":
            session.start_course()
            for client in self._server.get_clients().values():
                look_over(client)
        elif kind == "world":
            session.restore()
        elif what == "stand":
            session.change(speed=0.0, yaw_rate=0.0)
        elif what == "reset":
            session.reset()
        elif what == "step":
            session.change(paused=True)
            session.step()
        else:
            session.change(paused=not session.controls.paused)

    def _light_up(self) -> None:
        if self.session.brain.table is not None:
            self._light.content = brightness(self.session.brain.signals())

    def _publish(self) -> None:
        session = self.session
        score = None if session.course is None else session.course.score
        numbers = instruments.gait_and_numbers(session.reading(), session.controls)
        self._numbers.content = numbers + instruments.score_board(score, session.best)
        if session.controls.driven:
            self._panel.show_spoken(session.driving.spoken)
        self._drawing.draw_ways()
        self._strip.content = instruments.footfalls(session.memory.foot_force(), session.control_dt)
        for pair in PAIRS:
            flexors, extensors = (session.brain.columns(name) for name in pair)
            if flexors is not None and extensors is not None and session.memory.moments:
                signals, sites = session.memory.signals(), session.task.robot.plan.sites
                self._traces.content = instruments.half_centres(
                    signals[:, flexors], signals[:, extensors], session.control_dt, sites, pair
                )


def choices(*given: str | None) -> tuple[str, ...]:
    """Policies to offer: those given, the shipped and built-in ones, and the runs in the folder `runs`."""
    runs = sorted(str(path.parent) for path in Path("runs").glob("*/best.safetensors"))
    named = (name for name in given if name)
    return tuple(dict.fromkeys((*named, *shipped_policies(), "untrained", "zero", "random", *runs)))
