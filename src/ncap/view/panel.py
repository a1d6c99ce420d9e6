"""The live page's controls. They change nothing themselves: what was asked for is collected until the page takes it."""

import threading
import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from ncap.circuits.animal import PATHWAYS
from ncap.view.controls import AFTER_FALL, MAX_PUSH, PUSHES, Controls
from ncap.view.style import MUTED, TEXT

NO_GHOST: Final = "nobody"
"""The choice that takes the ghost away."""
INTACT: Final = "nothing"
"""The choice that heals every knock-out."""
AFFERENTS: Final = "afferents"
"""The pathway that has a check box of its own."""
GROUND_DELAY: Final = 0.3
"""Time without further dragging after which new bumps are made, which takes a moment, s."""
MAX_ORDERS: Final = 64
"""Clicks and pushes that wait for the page; further ones are dropped, or a flood of them would hold it up for ever."""
WORLD: Final = (
    ("target_speed", "Target (m/s)", 0.05),
    ("bumpiness", "Bumpiness", 0.05),
    ("friction", "Friction", 0.05),
    ("trunk_mass_scale", "Trunk mass (×)", 0.05),
    ("kp", "Stiffness kp", 1.0),
    ("kd", "Damping kd", 0.5),
)
"""Sliders about the world: control, label, step."""

KEYS: Final[Mapping[str, tuple[str, tuple[str, Any]]]] = {
    "I": ("Faster", ("key", ("speed", 1))),
    "K": ("Slower", ("key", ("speed", -1))),
    "J": ("Turn left", ("key", ("yaw_rate", 1))),
    "L": ("Turn right", ("key", ("yaw_rate", -1))),
    "space": ("Stand", ("time", "stand")),
}
"""Keys for driving: what each is called and what it orders. W, A, S and D move viser's camera."""

_FIELD: Final = "ncap-clicked"
CLICK: Final = (
    "const part=event.target.closest('[data-cut]');"
    f"const mark=document.getElementById('{_FIELD}');"
    "const field=mark&&mark.parentElement.nextElementSibling.querySelector('input');"
    "if(part&&field){"
    "Object.getOwnPropertyDescriptor(HTMLInputElement.prototype,'value').set"
    ".call(field,part.dataset.cut+'@'+Date.now());"
    "field.dispatchEvent(new Event('input',{bubbles:true}))}"
)
"""JavaScript for the attribute onclick of an HTML element: reports the attribute data-cut of what was clicked in it.

viser has no events for the inside of HTML elements, but runs such handlers. This one types the name into a text field
that nobody sees, whose updates reach Python. The moment behind @ makes two clicks on the same part two updates.
"""


class Panel:
    """Sliders, menus and buttons, and what was asked for by them since the last call of `taken`."""

    def __init__(
        self, gui: Any, controls: Controls, ranges: Mapping[str, tuple[float, float]], policies: Sequence[str]
    ) -> None:
        self._lock = threading.Lock()
        self._ranges = ranges
        self._wishes: dict[str, Any] = {}
        self._orders: list[tuple[str, Any]] = []
        self._touched = 0.0
        self._handles: dict[str, Any] = {}
        self._add_policies_and_circuit(gui, controls, policies)
        self._add_driving(gui, controls)
        with gui.add_folder("Time"):
            buttons = gui.add_button_group("", ("play / pause", "step", "reset"))
            buttons.on_click(lambda _: self._order("time", buttons.value))
            self._slider(gui, "pace", "Slow motion (×)", 0.05, controls.pace)
            self._choice(gui, "after_fall", "After a fall", AFTER_FALL, controls.after_fall)
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
        self.show(controls)

    def _add_policies_and_circuit(self, gui: Any, controls: Controls, policies: Sequence[str]) -> None:
        self._choice(gui, "policy", "Policy", policies, controls.policy)
        self._choice(gui, "ghost", "Ghost", (NO_GHOST, *policies), controls.ghost or NO_GHOST)
        with gui.add_folder("Circuit"):
            marks = ((0.15, "walk"), (0.55, "trot"), (0.95, "bound"))
            self._slider(gui, "command", "Brainstem command", 0.01, controls.command or 0.0, marks)
            pathways = tuple(name for name in PATHWAYS if name != AFFERENTS)
            self._pathway = gui.add_dropdown("Knock out", (INTACT, *pathways), initial_value=INTACT)
            self._pathway.on_update(lambda event: self._knock_out(event, self._pathway.value))
            self._feedback = gui.add_checkbox("Feedback from the legs", True)
            self._feedback.on_update(lambda event: self._connect(event, self._feedback.value))
            self._silenced = gui.add_html("")

    def _add_driving(self, gui: Any, controls: Controls) -> None:
        with gui.add_folder("Drive"):
            self._slider(gui, "speed", "Speed (m/s)", 0.05, controls.speed)
            self._slider(gui, "yaw_rate", "Turn left (rad/s)", 0.05, controls.yaw_rate)
            gui.add_html(
                f'<div style="padding:0 12px 8px;font:12px/1.5 system-ui,sans-serif;color:{MUTED}">'
                "keys: I faster · K slower · J left · L right · space stands</div>"
            )
        for key, (label, what) in KEYS.items():
            command = gui.add_command(label, hotkey=key)
            command.on_trigger(lambda _, what=what: self._order(*what))

    def add_click_field(self, gui: Any) -> None:
        """Add the text field, which nobody sees, into which CLICK types."""
        gui.add_html(f'<style>div:has(>#{_FIELD})+*{{display:none}}</style><div id="{_FIELD}"></div>')
        field = gui.add_text("clicked", "")
        field.on_update(lambda event: self.clicked(event, field.value))

    def clicked(self, event: Any, value: str) -> None:
        """Take what CLICK typed: the name of a knock-out, @, and the moment of the click."""
        if event.client is None:
            return
        name = value.rpartition("@")[0]
        if name == INTACT:
            self._wish(without=())
        elif name:
            self._order("click", name)

    def _knock_out(self, event: Any, name: str) -> None:
        if event.client is None:
            return
        if name == INTACT:
            self._wish(without=())
        else:
            self._order("silence", name)

    def _connect(self, event: Any, connected: bool) -> None:
        if event.client is not None:
            self._order("heal" if connected else "silence", AFFERENTS)

    def _slider(self, gui: Any, name: str, label: str, step: float, value: float, marks: Any = None) -> None:
        low, high = self._ranges[name]
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
            if len(self._orders) < MAX_ORDERS:
                self._orders.append((kind, what))

    def taken(self) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
        """(changes to controls, orders) since the last call. Bumpiness is held back while its slider is dragged."""
        with self._lock:
            wishes, orders = self._wishes, self._orders
            self._wishes, self._orders = {}, []
            if "bumpiness" in wishes and time.monotonic() - self._touched < GROUND_DELAY:
                self._wishes = {"bumpiness": wishes.pop("bumpiness")}
        if "ghost" in wishes:
            wishes["ghost"] = None if wishes["ghost"] == NO_GHOST else wishes["ghost"]
        return wishes, orders

    def show_spoken(self, command: float) -> None:
        """Let the slider of the command follow a brainstem."""
        _set(self._handles["command"], "value", round(command, 2))

    def show(self, controls: Controls) -> None:
        """Make all widgets agree with the controls."""
        for name, handle in self._handles.items():
            value = getattr(controls, name)
            if name == "ghost":
                value = value or NO_GHOST
            _set(handle, "value", value)
        pathways = [name for name in controls.without if name in PATHWAYS and name != AFFERENTS]
        _set(self._pathway, "value", pathways[-1] if pathways else INTACT)
        _set(self._feedback, "value", AFFERENTS not in controls.without)
        _set(self._silenced, "content", silenced(controls.without))
        for handle in (self._handles["command"], self._pathway, self._feedback):
            _set(handle, "disabled", controls.command is None)
        for name in ("speed", "yaw_rate"):
            _set(self._handles[name], "disabled", not controls.can_be_driven)


def silenced(without: Sequence[str]) -> str:
    """A list of the knock-outs as HTML, each of which a click heals."""
    if not without:
        return ""
    look = (
        f"display:inline-block;margin:2px 4px 2px 0;padding:1px 8px;border-radius:9px;background:#263242;color:{TEXT};"
        "cursor:pointer"
    )
    chips = "".join(
        f'<span data-cut="{escape(name)}" style="{look}" title="heal it">{escape(name)} ×</span>' for name in without
    )
    everything = f'<span data-cut="{INTACT}" style="{look};background:none;color:{MUTED}">heal all</span>'
    around = f"padding:0 12px 8px;font:12px/1.5 system-ui,sans-serif;color:{MUTED}"
    return f'<div class="silenced" onclick="{escape(CLICK)}" style="{around}">silenced: {chips}{everything}</div>'


def _set(handle: Any, attribute: str, value: Any) -> None:
    """Set an attribute of a widget if it changes: every assignment is a message to all tabs."""
    if value is not None and getattr(handle, attribute) != value:
        setattr(handle, attribute, value)
