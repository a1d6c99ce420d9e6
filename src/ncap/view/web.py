"""The live page: a session in 3-D beside its circuit, in any number of browser tabs.

One thread, that of `run`, owns the session. viser's threads only leave in the panel what visitors ask for.
"""

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
from ncap.view.controls import PUSHES
from ncap.view.diagram import Diagram, brightness
from ncap.view.panel import CLICK, Panel
from ncap.view.scene import PATH_COLOUR, WANTED_COLOUR, FootLights, GroundNodes, PathNode, RobotNodes
from ncap.view.session import GHOST, ROBOT, Session
from ncap.view.style import BACKGROUND, PANEL, SKY, ZENITH

Array = NDArray[np.float64]

LIGHTS_EVERY: Final = 0.06
"""Real time between two pictures of the circuit's activity, s."""
INSTRUMENTS_EVERY: Final = 0.12
"""Real time between two updates of strips and numbers, s."""
BACKLOG: Final = 0.25
"""Real time by which the simulation may be late before the lost time is given up, s."""
ARROW_SECONDS: Final = 0.5
"""Real time for which the arrow of a push is shown, s."""
REFUSALS_EVERY: Final = 10.0
"""Real time between two lines about visitors who were refused, s."""
LONGEST_REASON: Final = 200
"""Characters of an unforeseen error that are kept."""

_PAINT: Final = (
    '<style>:root[data-mantine-color-scheme="dark"]{'
    f"--mantine-color-body:{BACKGROUND};--mantine-color-dark-7:{BACKGROUND};--mantine-color-dark-6:{PANEL};"
    "--mantine-color-dark-5:#1f2a38;--mantine-color-dark-4:#2d3a4c}"
    ".wiring{max-height:calc(100vh - 425px)}</style>"
)
"""Style sheet: viser's greys in our colours, and a wiring diagram that leaves room for what is below it."""


class Page:
    """A page that shows a session and does what its visitors ask for."""

    def __init__(self, session: Session, policies: Sequence[str], *, host: str, port: int, plain: bool = False) -> None:
        try:
            import viser

            from ncap.view.gate import Gate
        except ImportError:
            raise missing_extra("the live page", "view") from None
        self.session, self.stopping = session, False
        self.gate = Gate(host, port)
        self._told = time.perf_counter()
        with redirect_stdout(StringIO()), self.gate.around(viser.__version__):  # viser prints a long greeting
            self._server: Any = viser.ViserServer(host=host, port=self.gate.port, label="ncap", verbose=False)
        self.address = self.gate.address
        gui = self._server.gui
        gui.configure_theme(dark_mode=True, show_logo=False, show_share_button=False, brand_color=(255, 190, 70))
        gui.add_html(_PAINT)
        self._numbers = gui.add_html("")
        self._panel = Panel(gui, session.controls, session.ranges, policies)
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
        self._nodes: list[Any] = []
        self._arrow_until = 0.0
        self._set_stage(plain)
        self._rebuild_scene()
        self._draw_wiring()
        self._publish_poses()
        self._publish()
        self.gate.open(self._server)

    def _set_stage(self, plain: bool) -> None:
        scene, camera = self._server.scene, self._server.initial_camera
        low, high = (np.array(colour, float) for colour in (SKY, ZENITH))
        share = np.clip(1.0 - np.linspace(0.0, 2.8, 256), 0.0, 1.0)[:, None, None]
        scene.set_background_image(np.broadcast_to(low + (high - low) * share, (256, 4, 3)).astype(np.uint8), "png")
        linear = tuple(round(255 * (channel / 255) ** 2.2) for channel in SKY)
        scene.configure_fog(2.5, 7.0, color=linear)
        scene.configure_environment_map(None)
        scene.configure_default_lights(cast_shadow=not plain)
        scene.add_light_hemisphere("/light", sky_color=(214, 228, 255), ground_color=(92, 100, 116), intensity=1.7)
        camera.position, camera.look_at, camera.up = (0.72, -1.12, 0.5), (0.0, 0.0, 0.19), (0.0, 0.0, 1.0)

    def _rebuild_scene(self) -> None:
        for node in self._nodes:
            node.remove()
        session, scene = self.session, self._server.scene
        model = session.arena.simulation.model(ROBOT)
        self._arena = session.arena
        self._model_seed = session.seed
        self._ground = GroundNodes(scene, model, session.arena.task.terrain)
        self._robot = RobotNodes(scene, "/robot", model)
        self._ghost = RobotNodes(scene, "/ghost", model, ghost=True)
        self._feet = FootLights(scene, session.arena.world.foot_geoms)
        self._path = PathNode(scene, "/path", PATH_COLOUR)
        self._wanted = PathNode(scene, "/wanted", WANTED_COLOUR)
        self._nodes = [self._ground, self._robot, self._ghost, self._feet, self._path, self._wanted]

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
        dark = late = False  # whether the circuit, and whether the instruments have yet to show the last step
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
                self._publish_poses()
                dark = late = True
            if dark and now - lit > LIGHTS_EVERY:
                lit, dark = now, False
                self._light_up()
            if late and now - read > INSTRUMENTS_EVERY:
                read, late = now, False
                self._publish()
            if self._arrow_until and now > self._arrow_until:
                self._server.scene.remove_by_name("/push")
                self._arrow_until = 0.0
            if now - self._told > REFUSALS_EVERY:
                self._tell_refusals()
            time.sleep(max(0.0, min(due - time.perf_counter(), 0.01)))

    def stop(self) -> None:
        """End `run` after the step that it does now. An exception in the middle of one could leave viser locked."""
        self.stopping = True

    def close(self) -> None:
        """Stop serving."""
        with redirect_stdout(StringIO()):
            self._server.stop()
        self._tell_refusals()

    def _tell_refusals(self) -> None:
        self._told = time.perf_counter()
        if line := self.gate.refused.line():
            print(f"watch: {line}", file=sys.stderr, flush=True)

    def _obey(self) -> bool:
        """Do what visitors asked for; False if they asked for nothing."""
        wishes, orders = self._panel.taken()
        if not wishes and not orders:
            return False
        session, before = self.session, self.session.controls
        try:
            if wishes:
                session.change(**wishes)
            for kind, what in orders:
                self._execute(kind, what)
        except UserError as error:
            self._say_no(str(error))
        except Exception as error:  # whatever a visitor asked for, the page goes on for the others
            self.gate.refused.count(f"wish that failed, {type(error).__name__}: {error}"[:LONGEST_REASON])
            self._say_no(f"something failed ({type(error).__name__})")
        after = session.controls
        if (before.policy, before.without) != (after.policy, after.without):
            self._draw_wiring()
        obeyed = all(getattr(after, name) == value for name, value in wishes.items())
        if not (obeyed and len(wishes) == 1 and not wishes.keys() & {"policy", "without"}):
            self._panel.show(after)  # while a single slider is dragged, nothing is sent back to it
        self._publish_poses()
        return True

    def _say_no(self, reason: str) -> None:
        for client in self._server.get_clients().values():
            client.add_notification("Not possible", reason, color="red", auto_close_seconds=6.0)

    def _execute(self, kind: str, what: Any) -> None:
        session = self.session
        without = session.controls.without
        if kind == "push":
            session.push(*what)
            self._show_push(*what)
        elif kind == "key":
            session.press(*what)
        elif kind == "click":
            session.click(what)
        elif kind == "silence":
            session.change(without=(*(name for name in without if name != what), what))
        elif kind == "heal":
            session.change(without=tuple(name for name in without if name != what))
        elif what == "stand":
            session.change(speed=0.0, yaw_rate=0.0)
        elif what == "reset":
            session.reset()
        elif what == "step":
            session.change(paused=True)
            session.step()
        else:
            session.change(paused=not session.controls.paused)

    def _show_push(self, direction: str, impulse: float) -> None:
        way = np.array([*PUSHES[direction], 0.0])
        tip = np.array([0.0, 0.0, 0.32])
        self._server.scene.add_arrows(
            "/push",
            np.array([[tip - way * (0.25 + 0.02 * impulse), tip - 0.12 * way]]),
            (255, 90, 90),
            shaft_radius=0.012,
            head_radius=0.035,
            head_length=0.08,
        )
        self._arrow_until = time.perf_counter() + ARROW_SECONDS

    def _publish_poses(self) -> None:
        session = self.session
        other_ground = session.seed != self._model_seed and session.arena.task.terrain.grid is not None
        if session.arena is not self._arena or other_ground:
            self._rebuild_scene()
        origin = np.array([*session.arena.measured.position[ROBOT, :2], 0.0])
        with self._server.atomic():
            self._robot.move(session.arena.state(ROBOT), origin)
            self._ground.move(origin)
            self._path.move(origin)
            self._wanted.move(origin)
            self._feet.move(self._robot, session.arena.measured.foot_force[ROBOT], origin)
            self._ghost.show(session.ghost is not None)
            if session.ghost is not None:
                self._ghost.move(session.arena.state(GHOST), origin)

    def _light_up(self) -> None:
        if self.session.brain.table is not None:
            self._light.content = brightness(self.session.brain.signals())

    def _publish(self) -> None:
        session = self.session
        self._numbers.content = instruments.gait_and_numbers(session.reading(), session.controls)
        if session.controls.driven:
            self._panel.show_spoken(session.driving.spoken)
        self._path.draw(session.driving.paths.went)
        self._wanted.draw(session.driving.paths.wanted if session.controls.driven else ())
        self._strip.content = instruments.footfalls(session.memory.foot_force(), session.control_dt)
        flexors, extensors = (session.brain.columns(name) for name in ("flexor", "extensor"))
        if flexors is not None and extensors is not None and session.memory.moments:
            signals = session.memory.signals()
            self._traces.content = instruments.half_centres(
                signals[:, flexors], signals[:, extensors], session.control_dt
            )


def choices(*given: str | None) -> tuple[str, ...]:
    """Policies to offer: those given, the shipped and built-in ones, and the runs in the folder `runs`."""
    runs = sorted(str(path.parent) for path in Path("runs").glob("*/best.safetensors"))
    named = (name for name in given if name)
    return tuple(dict.fromkeys((*named, *shipped_policies(), "untrained", "zero", "random", *runs)))
