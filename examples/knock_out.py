"""Knock out V0v, the neurons that make a trot, and watch what is left.

Run it with `python examples/knock_out.py` for numbers, or with `--watch` for the live page with the knock-out in place.
"""

import tyro

from ncap.tasks import find_task
from ncap.view.brain import INTACT
from ncap.view.session import Session


def main(
    without: str = "V0v",
    commands: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.9),
    seconds: float = 8.0,
    watch: bool = False,
) -> None:
    """Show the gait of the circuit alone, intact and after the knock-out, at several commands."""
    session = Session(find_task("flat-walk"), "untrained")
    if watch:
        from ncap.view.web import Page, choices

        session.change(without=without)
        page = Page(session, choices("untrained"), host="127.0.0.1", port=8080)
        print(f"watch: {page.address}   (Ctrl-C ends it)", flush=True)
        try:
            page.run()
        finally:
            page.close()
        return
    session.change(feedback=False)  # the rhythm of the circuit alone, undisturbed by the legs
    print(f"{'c':>4}  {'intact':<10} without {without}")
    for command in commands:
        gaits = []
        for name in (INTACT, without):
            session.change(command=command, without=name)
            session.reset()
            for _ in range(round(seconds / session.control_dt)):
                session.step()
            reading = session.reading()
            assert reading.circuit_gait is not None
            gaits.append(reading.circuit_gait.label)
        print(f"{command:4.2f}  {gaits[0]:<10} {gaits[1]}")


if __name__ == "__main__":
    tyro.cli(main)
