"""The live page: a session in 3-D beside its circuit, in any number of browser tabs.

One thread, that of `run`, owns the session. viser's threads only leave wishes in the panel.
"""

import socket
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.policies.storage import shipped_policies
from ncap.view import instruments
from ncap.view.brain import silenced
from ncap.view.diagram import Diagram, brightness
from ncap.view.panel import Panel
from ncap.view.scene import FootLights, GroundNodes, RobotNodes
from ncap.view.session import PUSHES, Session
from ncap.view.style import BACKGROUND, PANEL

Array = NDArray[np.float64]

LIGHTS_EVERY: Final = 0.06
"""s of our time between two pictures of the circuit's activity."""
INSTRUMENTS_EVERY: Final = 0.12
"""s between two readings of strips and numbers."""
BACKLOG: Final = 0.25
"""s by which the robot may be late before the lost time is given up."""
ARROW_SECONDS: Final = 0.5
SKY: Final = ((44, 60, 82), (13, 18, 26))
"""Colours of the haze, where the ground ends, and of the zenith."""


_PAINT: Final = (
    '<style>:root[data-mantine-color-scheme="dark"]{'
    f"--mantine-color-body:{BACKGROUND};--mantine-color-dark-7:{BACKGROUND};--mantine-color-dark-6:{PANEL};"
    "--mantine-color-dark-5:#1f2a38;--mantine-color-dark-4:#2d3a4c}"
    ".wiring{max-height:calc(100vh - 395px)}</style>"
)
"""viser's greys in our colours, and a wiring diagram that leaves room for what is below it."""


class Page:
    """A page that shows a session and obeys its visitors."""

    def __init__(self, session: Session, policies: Sequence[str], *, host: str, port: int, plain: bool = False) -> None:
        try:
            import viser
        except ImportError:
            raise UserError("the live page needs the extra `view`: pip install 'ncap[view]'") from None
        self.session = session
        try:
            with socket.socket() as probe:  # viser would try one port after another for ever
                probe.bind((host, 0))
        except OSError as error:
            raise UserError(f"cannot listen on {host}: {error.strerror}") from None
        if not 0 < port < 2**16:
            raise UserError(f"port {port} is outside [1, 65535]")
        with redirect_stdout(StringIO()):  # viser greets at length
            self._server: Any = viser.ViserServer(host=host, port=port, label="ncap", verbose=False)
        self.address = f"http://{'localhost' if host == '0.0.0.0' else host}:{self._server.get_port()}"
        gui = self._server.gui
        gui.configure_theme(dark_mode=True, show_logo=False, show_share_button=False, brand_color=(255, 190, 70))
        gui.add_html(_PAINT)
        self._numbers = gui.add_html("")
        self._panel = Panel(gui, session.controls, policies)
        circuit = gui.add_panel()
        with circuit.add_tab("The circuit thinks"):
            self._wiring, self._light, self._strip, self._traces = (gui.add_html("") for _ in range(4))
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

    def _set_stage(self, plain: bool) -> None:
        scene, camera = self._server.scene, self._server.initial_camera
        low, high = (np.array(colour, float) for colour in SKY)
        share = np.clip(1.0 - np.linspace(0.0, 2.8, 256), 0.0, 1.0)[:, None, None]
        scene.set_background_image(np.broadcast_to(low + (high - low) * share, (256, 4, 3)).astype(np.uint8), "png")
        scene.configure_fog(2.5, 7.0, color=tuple(round(255 * (c / 255) ** 2.2) for c in SKY[0]))  # linear, to viser
        scene.configure_environment_map(None)
        scene.configure_default_lights(cast_shadow=not plain)
        scene.add_light_hemisphere("/light", sky_color=(214, 228, 255), ground_color=(92, 100, 116), intensity=1.7)
        camera.position, camera.look_at, camera.up = (0.72, -1.12, 0.5), (0.0, 0.0, 0.19), (0.0, 0.0, 1.0)

    def _rebuild_scene(self) -> None:
        for node in self._nodes:
            node.remove()
        session, scene = self.session, self._server.scene
        model = session.arena.simulation.model(0)
        self._arena = session.arena
        self._model_seed = session.seed
        self._ground = GroundNodes(scene, model, session.arena.task.terrain)
        self._robot = RobotNodes(scene, "/robot", model)
        self._ghost = RobotNodes(scene, "/ghost", model, ghost=True)
        self._feet = FootLights(scene, session.arena.world.foot_geoms)
        self._nodes = [self._ground, self._robot, self._ghost, self._feet]

    def _draw_wiring(self) -> None:
        circuit = self.session.brain.circuit
        if circuit is None:
            self._wiring.content = instruments.nothing_to_show(self.session.brain.name)
            self._light.content = self._traces.content = ""
        else:
            self._wiring.content = Diagram(circuit).svg(*silenced(self.session.controls.without))

    def run(self, seconds: float = float("inf")) -> None:
        """Live for so long, in real time times the pace. Nobody is simulated while nobody watches."""
        session = self.session
        begin = due = time.perf_counter()
        lit = read = begin
        dark = late = False  # whether the circuit, and the instruments, have yet to show the last step
        while (now := time.perf_counter()) - begin < seconds:
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
            time.sleep(max(0.0, min(due - time.perf_counter(), 0.01)))

    def close(self) -> None:
        """Stop serving."""
        with redirect_stdout(StringIO()):
            self._server.stop()

    def _obey(self) -> bool:
        """Do what visitors asked for; whether they did."""
        wishes, orders = self._panel.taken()
        if not wishes and not orders:
            return False
        session, before = self.session, self.session.controls
        try:
            if wishes:
                session.change(**wishes)
            for kind, what in orders:
                if kind == "push":
                    session.push(*what)
                    self._show_push(*what)
                elif what == "reset":
                    session.reset()
                elif what == "step":
                    session.change(paused=True)
                    session.step()
                else:
                    session.change(paused=not session.controls.paused)
        except UserError as error:
            for client in self._server.get_clients().values():
                client.add_notification("Not possible", str(error), color="red", auto_close_seconds=6.0)
        after = session.controls
        if (before.policy, before.without) != (after.policy, after.without):
            self._draw_wiring()
        if len(wishes) != 1 or "policy" in wishes or any(getattr(after, k) != v for k, v in wishes.items()):
            self._panel.show(after)
        self._publish_poses()
        return True

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
        bumpy_again = session.seed != self._model_seed and session.controls.bumpiness > 0
        if session.arena is not self._arena or bumpy_again:
            self._rebuild_scene()
        origin = np.array([*session.arena.measured.position[0, :2], 0.0])
        with self._server.atomic():
            self._robot.move(session.arena.state(0), origin)
            self._ground.move(origin)
            self._feet.move(self._robot, session.arena.measured.foot_force[0], origin)
            self._ghost.show(session.ghost is not None)
            if session.ghost is not None:
                self._ghost.move(session.arena.state(1), origin)

    def _light_up(self) -> None:
        if self.session.brain.circuit is not None:
            self._light.content = brightness(self.session.brain.signals())

    def _publish(self) -> None:
        session = self.session
        self._numbers.content = instruments.gait_and_numbers(session.reading(), session.controls.target_speed)
        self._strip.content = instruments.footfalls(session.foot_force(), session.control_dt)
        circuit = session.brain.circuit
        if circuit is not None and session.history:
            signals = session.signals()
            self._traces.content = instruments.half_centres(
                signals[:, circuit.columns("flexor")], signals[:, circuit.columns("extensor")], session.control_dt
            )


def choices(*given: str | None) -> tuple[str, ...]:
    """Policies to offer: those given, the shipped and built-in ones, and the runs in the folder `runs`."""
    runs = sorted(str(path.parent) for path in Path("runs").glob("*/best.safetensors"))
    named = (name for name in given if name)
    return tuple(dict.fromkeys((*named, *shipped_policies(), "untrained", "zero", "random", *runs)))
