"""A short tour of the live page, which the first visitor is offered and anybody can dismiss."""

from collections.abc import Callable
from html import escape
from typing import Any, Final

from ncap.view.style import MUTED, TEXT

STEPS: Final = (
    (
        "A circuit that walks",
        "A spinal circuit moves this robot; no program says when to lift a foot. Four short steps show what you can "
        "do with it. The robot walks on meanwhile.",
    ),
    (
        "Drive it",
        "Keys I and K: faster and slower. J and L: turn left and right. Space: stand. The arrows and sliders under "
        "Drive do the same. Start the course, and the clock runs: twelve gates, a hundred points each.",
    ),
    (
        "Take it apart",
        "The circuit glows as it works. Rest the pointer on a part to read what it is, click it to silence it, click "
        "again to heal it. Silence V0v in a trot and see what becomes of the footfalls.",
    ),
    (
        "Push it, move it, keep it",
        "Push the robot, give it bumps, ice or another body, let another policy walk beside it as a ghost. Save the "
        "last 20 seconds as a replay that opens anywhere. Every control says what it does when the pointer rests on "
        "it.",
    ),
)
"""(title, text) of every step."""


class Tour:
    """The steps in a window over the page, one after the other, the same in all tabs. Its owner calls `turn`."""

    def __init__(self, gui: Any, order: Callable[[str, Any], None]) -> None:
        """order: what the buttons do, with "tour" and "next" or "end"."""
        self._gui, self._order = gui, order
        self._modal: Any = None
        self._step = 0

    @property
    def open(self) -> bool:
        """Whether a step is shown."""
        return self._modal is not None

    def begin(self) -> None:
        """Show the first step."""
        self._show(0)

    def turn(self, what: str) -> None:
        """Show the next step, begin again, or end the tour."""
        if what == "begin":
            self.begin()
        elif what == "next" and self.open and self._step + 1 < len(STEPS):
            self._show(self._step + 1)
        else:
            self._close()

    def _show(self, step: int) -> None:
        self._close()
        self._step, last = step, step + 1 == len(STEPS)
        title, text = STEPS[step]
        self._modal = self._gui.add_modal(f"{step + 1} of {len(STEPS)} · {title}")
        with self._modal:
            self._gui.add_html(
                f'<div class="tour" style="padding:4px 2px 10px;font:15px/1.55 system-ui,sans-serif;color:{TEXT}">'
                f'{escape(text)}<div style="color:{MUTED};font-size:12px;margin-top:6px">'
                "It comes back with the button Tour, under Keep and share.</div></div>"
            )
            on = self._gui.add_button("Begin" if last else "Next")
            on.on_click(lambda _: self._order("tour", "next"))
            if not last:
                off = self._gui.add_button("Skip the tour", color="gray")
                off.on_click(lambda _: self._order("tour", "end"))

    def _close(self) -> None:
        if self._modal is not None:
            self._modal.close()
            self._modal = None
