"""The live page's controls. They change nothing themselves: what was asked for is collected until the page takes it."""

import threading
import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from ncap.circuits.animal import PATHWAYS
from ncap.circuits.swimmer import PATHWAYS as SWIMMING
from ncap.view.controls import AFTER_FALL, CAMERAS, MAX_PUSH, PUSHES, Controls
from ncap.view.style import MUTED, TEXT

NO_GHOST: Final = "nobody"
"""The choice that takes the ghost away."""
INTACT: Final = "nothing"
"""The choice that heals every knock-out."""
FEEDBACK: Final = ("afferents", "proprioception")
"""The pathways, of legs and of swimmers, that have a check box of their own."""
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
HINTS: Final[Mapping[str, str]] = {
    "policy": "What moves the robot. Another one takes over in mid-stride.",
    "ghost": "A second policy, whose robot walks beside and touches nothing of the first. Both start anew.",
    "task": "The ground, the speed that is rewarded, and the robot that goes with them. The policy stays if it fits.",
    "robot": "Another body in the same task. The policy stays if it fits.",
    "camera": "Drag to turn it, wheel to come closer. Behind: it turns with the robot.",
    "command": "The number that sets speed and gait of the circuit. A brainstem moves it while the robot is driven.",
    "speed": "Forward speed that is wanted; 0 stands. Keys I and K.",
    "yaw_rate": "Turning that is wanted, positive to the left. Keys J and L.",
    "pace": "Simulated seconds in a second of real time.",
    "after_fall": "Rise from where it lies and walk on, or begin the next episode.",
    "target_speed": "Forward speed that is rewarded. It moves nothing by itself.",
    "bumpiness": "0 is a plane. Another value is new ground, and a new start.",
    "friction": "Sliding friction of the feet: 0.1 is ice, 1 is rubber on concrete.",
    "trunk_mass_scale": "Factor on the trunk's mass and inertia.",
    "kp": "Torque of a joint for its distance from the target, N m/rad.",
    "kd": "Torque of a joint against its velocity, N m s/rad.",
}
"""What is said of a control when the pointer rests on it."""
ARROWS: Final[Mapping[str, tuple[str, Any]]] = {
    "◀": ("key", ("yaw_rate", 1)),
    "▲": ("key", ("speed", 1)),
    "▼": ("key", ("speed", -1)),
    "▶": ("key", ("yaw_rate", -1)),
    "■": ("time", "stand"),
}
"""Buttons for driving, where there are no keys, and what they order."""

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
        self,
        gui: Any,
        controls: Controls,
        ranges: Mapping[str, tuple[float, float]],
        menus: Mapping[str, Sequence[str]],
    ) -> None:
        """menus: the policies, tasks and robots to choose from, by control."""
        self._lock = threading.Lock()
        self._ranges = ranges
        self._swims = False
        self._wishes: dict[str, Any] = {}
        self._orders: list[tuple[str, Any]] = []
        self._touched = 0.0
        self._handles: dict[str, Any] = {}
        self._choice(gui, "policy", "Policy", menus["policy"], controls.policy)
        self._choice(gui, "ghost", "Ghost", (NO_GHOST, *menus["policy"]), controls.ghost or NO_GHOST)
        self._choice(gui, "task", "Task", menus["task"], controls.task)
        self._choice(gui, "robot", "Robot", menus["robot"], controls.robot)
        self._choice(gui, "camera", "Camera", CAMERAS, controls.camera)
        self._add_driving(gui, controls)
        self._add_circuit(gui, controls)
        with gui.add_folder("Time"):
            buttons = gui.add_button_group(
                "", ("play / pause", "step", "reset"), hint="Hold time, go on by one control step, or start anew."
            )
            buttons.on_click(lambda _: self.order("time", buttons.value))
            self._slider(gui, "pace", "Slow motion (×)", 0.05, controls.pace)
            self._choice(gui, "after_fall", "After a fall", AFTER_FALL, controls.after_fall)
        with gui.add_folder("Push"):
            strength = gui.add_slider(
                "Strength (N s)", 1.0, MAX_PUSH, 1.0, 12.0, hint="Impulse of the blow, on the whole robot."
            )
            sides = gui.add_button_group("", tuple(PUSHES), hint="Give the robot, and the ghost, a blow that way.")
            sides.on_click(lambda _: self.order("push", (sides.value, strength.value)))
        with gui.add_folder("Keep and share"):
            save = gui.add_button(
                "Save the last 20 s", hint="A replay: one file that opens in any browser, without network and ncap."
            )
            save.on_click(lambda event: self.order("save", event.client_id))
            film = gui.add_button(
                "Video of the last 20 s",
                hint="An MP4 to show anywhere. It takes a while; the robot goes on.",
                color="gray",
            )
            film.on_click(lambda event: self.order("video", event.client_id))
            tour = gui.add_button("Tour", hint="What can be done on this page, in four steps.", color="gray")
            tour.on_click(lambda _: self.order("tour", "begin"))
        with gui.add_folder("World", expand_by_default=False):
            for name, label, step in WORLD:
                self._slider(gui, name, label, step, getattr(controls, name))
            restore = gui.add_button("As it was", hint="The numbers of the task.")
            restore.on_click(lambda _: self.order("world", "restore"))
        self.show(controls, ranges)

    def _add_circuit(self, gui: Any, controls: Controls) -> None:
        with gui.add_folder("Circuit"):
            marks = ((0.15, "walk"), (0.55, "trot"), (0.95, "bound"))
            self._slider(gui, "command", "Brainstem command", 0.01, controls.command or 0.0, marks)
            pathways = tuple(dict.fromkeys(name for name in (*PATHWAYS, *SWIMMING) if name not in FEEDBACK))
            hint = "Silence a pathway, beside what is silent already."
            self._pathway = gui.add_dropdown("Knock out", (INTACT, *pathways), initial_value=INTACT, hint=hint)
            self._pathway.on_update(lambda event: self._knock_out(event, self._pathway.value))
            hint = "Off: the rhythm is the circuit's alone."
            self._feedback = gui.add_checkbox("Feedback from the body", True, hint=hint)
            self._feedback.on_update(lambda event: self._connect(event, self._feedback.value))
            self._silenced = gui.add_html("")

    def _add_driving(self, gui: Any, controls: Controls) -> None:
        with gui.add_folder("Drive"):
            self._slider(gui, "speed", "Speed (m/s)", 0.05, controls.speed)
            self._slider(gui, "yaw_rate", "Turn left (rad/s)", 0.05, controls.yaw_rate)
            arrows = gui.add_button_group("", tuple(ARROWS), hint="Left, faster, slower, right, stand.")
            arrows.on_click(lambda _: self.order(*ARROWS[arrows.value]))
            hint = "From the start through twelve gates, against the clock; again for a new try."
            self._course = gui.add_button("Start the course", hint=hint)
            self._course.on_click(lambda _: self.order("course", "start"))
            gui.add_html(
                f'<div style="padding:0 12px 8px;font:12px/1.5 system-ui,sans-serif;color:{MUTED}">'
                "keys: I faster · K slower · J left · L right · space stands</div>"
            )
        for key, (label, what) in KEYS.items():
            command = gui.add_command(label, hotkey=key)
            command.on_trigger(lambda _, what=what: self.order(*what))

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
            self.order("click", name)

    def _knock_out(self, event: Any, name: str) -> None:
        if event.client is None:
            return
        if name == INTACT:
            self._wish(without=())
        else:
            self.order("silence", name)

    def _connect(self, event: Any, connected: bool) -> None:
        if event.client is not None:
            self.order("heal" if connected else "silence", FEEDBACK[self._swims])

    def _slider(self, gui: Any, name: str, label: str, step: float, value: float, marks: Any = None) -> None:
        low, high = self._ranges[name]
        self._register(name, gui.add_slider(label, low, high, step, value, marks=marks, hint=HINTS[name]))

    def _choice(self, gui: Any, name: str, label: str, options: Sequence[str], value: str) -> None:
        every = tuple(dict.fromkeys((*options, value)))
        self._register(name, gui.add_dropdown(label, every, initial_value=value, hint=HINTS[name]))

    def _register(self, name: str, handle: Any) -> None:
        self._handles[name] = handle
        handle.on_update(lambda event: None if event.client is None else self._wish(**{name: handle.value}))

    def _wish(self, **values: Any) -> None:
        with self._lock:
            self._wishes |= values
            self._touched = time.monotonic()

    def order(self, kind: str, what: Any) -> None:
        """Ask for something that is done once. What cannot wait any more is dropped."""
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

    def show(self, controls: Controls, ranges: Mapping[str, tuple[float, float]]) -> None:
        """Make all widgets agree with the controls and their ranges."""
        for name, handle in self._handles.items():
            value = getattr(controls, name)
            if name == "ghost":
                value = value or NO_GHOST
            if name in ranges:
                low, high = ranges[name]
                _set(handle, "min", low)
                _set(handle, "max", high)
            elif value not in handle.options:
                handle.options = (*handle.options, value)
            _set(handle, "value", value)
        self._swims = controls.robot.startswith("swimmer")
        pathways = [name for name in controls.without if name in self._pathway.options]
        _set(self._pathway, "value", pathways[-1] if pathways else INTACT)
        _set(self._feedback, "value", FEEDBACK[self._swims] not in controls.without)
        _set(self._silenced, "content", silenced(controls.without))
        for handle in (self._handles["command"], self._pathway, self._feedback):
            _set(handle, "disabled", controls.command is None)
        for handle in (self._handles["speed"], self._handles["yaw_rate"], self._course):
            _set(handle, "disabled", not controls.can_be_driven)


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
