"""The live page's controls. They change nothing themselves: wishes are collected until the page's own thread asks."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from ncap.circuits.rhythm import KNOCKOUTS
from ncap.view.brain import INTACT
from ncap.view.session import MAX_PUSH, PUSHES, RANGES, Controls

NOBODY: Final = "nobody"
"""The ghost's name when there is none."""
SETTLING: Final = 0.3
"""s without further dragging after which new bumps are made, which is work."""
#: Numbers about the world: control, words, step of the slider.
WORLD: Final = (
    ("target_speed", "Target (m/s)", 0.05),
    ("bumpiness", "Bumpiness", 0.05),
    ("friction", "Friction", 0.05),
    ("trunk_mass_scale", "Trunk mass (×)", 0.05),
    ("kp", "Stiffness kp", 1.0),
    ("kd", "Damping kd", 0.5),
)


class Panel:
    """Sliders, menus and buttons, and what was asked for by them since the last `taken`."""

    def __init__(self, gui: Any, controls: Controls, policies: Sequence[str]) -> None:
        self._lock = threading.Lock()
        self._wishes: dict[str, Any] = {}
        self._orders: list[tuple[str, Any]] = []
        self._touched = 0.0
        self._handles: dict[str, Any] = {}
        self._policies_and_circuit(gui, controls, policies)
        with gui.add_folder("Time"):
            buttons = gui.add_button_group("", ("play / pause", "step", "reset"))
            buttons.on_click(lambda _: self._order("time", buttons.value))
            self._slider(gui, "pace", "Slow motion (×)", 0.05, controls.pace)
        with gui.add_folder("Push"):
            strength = gui.add_slider("Strength (N s)", 1.0, MAX_PUSH, 1.0, 12.0)
            sides = gui.add_button_group("", tuple(PUSHES))
            sides.on_click(lambda _: self._order("push", (sides.value, strength.value)))
        with gui.add_folder("World", expand_by_default=False):
            for name, label, step in WORLD:
                self._slider(gui, name, label, step, getattr(controls, name))
            original = {name: getattr(controls, name) for name, _, _ in WORLD}
            restore = gui.add_button("As it was")
            restore.on_click(lambda _: self._wish(**original))

    def _policies_and_circuit(self, gui: Any, controls: Controls, policies: Sequence[str]) -> None:
        self._choice(gui, "policy", "Policy", policies, controls.policy)
        self._choice(gui, "ghost", "Ghost", (NOBODY, *policies), controls.ghost or NOBODY)
        with gui.add_folder("Circuit"):
            marks = ((0.15, "walk"), (0.55, "trot"), (0.95, "bound"))
            self._slider(gui, "command", "Brainstem command", 0.01, controls.command or 0.0, marks)
            self._choice(gui, "without", "Knock out", (INTACT, *KNOCKOUTS), controls.without)
            feedback = gui.add_checkbox("Feedback from the legs", controls.feedback)
            self._register("feedback", feedback)

    def _slider(self, gui: Any, name: str, label: str, step: float, value: float, marks: Any = None) -> None:
        low, high = RANGES[name]
        self._register(name, gui.add_slider(label, low, high, step, value, marks=marks))

    def _choice(self, gui: Any, name: str, label: str, options: Sequence[str], value: str) -> None:
        self._register(name, gui.add_dropdown(label, tuple(dict.fromkeys((*options, value))), initial_value=value))

    def _register(self, name: str, handle: Any) -> None:
        self._handles[name] = handle
        handle.on_update(lambda event: None if event.client is None else self._wish(**{name: handle.value}))

    def _wish(self, **values: Any) -> None:
        with self._lock:
            self._wishes |= values
            self._touched = time.monotonic()

    def _order(self, kind: str, what: Any) -> None:
        with self._lock:
            self._orders.append((kind, what))

    def taken(self) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
        """(changes to controls, orders) since the last call. While a slider of the ground is dragged, it waits."""
        with self._lock:
            wishes, orders = self._wishes, self._orders
            self._wishes, self._orders = {}, []
            if "bumpiness" in wishes and time.monotonic() - self._touched < SETTLING:
                self._wishes = {"bumpiness": wishes.pop("bumpiness")}
        if "ghost" in wishes:
            wishes["ghost"] = None if wishes["ghost"] == NOBODY else wishes["ghost"]
        return wishes, orders

    def show(self, controls: Controls) -> None:
        """Let the widgets say what holds."""
        for name, handle in self._handles.items():
            value = getattr(controls, name)
            if name == "ghost":
                value = value or NOBODY
            if value is not None and handle.value != value:
                handle.value = value
        for name in ("command", "without", "feedback"):
            without_circuit = controls.command is None
            if self._handles[name].disabled != without_circuit:
                self._handles[name].disabled = without_circuit
