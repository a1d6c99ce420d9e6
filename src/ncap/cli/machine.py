"""Commands about this machine."""

from dataclasses import asdict

from ncap.cli.app import Json, app
from ncap.cli.terminal import print_json, print_table


@app.command
def doctor(json: Json = False) -> None:
    """Show versions, cores, rendering back ends and extras of this machine.

    Args:
        json: Print JSON.

    """
    from ncap import doctor as room
    from ncap.extras import install_command

    found = room.diagnose()
    if json:
        print_json(asdict(found))
        return
    rows = [("Python", found.python), ("system", found.system), ("cores", str(found.cores))]
    rows += [(name, version or "missing") for name, version in found.packages.items()]
    for name, works in found.rendering.items():
        rows.append((f"rendering {name}", "found" if works else f"missing: install {room.BACK_ENDS[name]}"))
    for name, missing in found.extras.items():
        rows.append((f"extra {name}", f"missing: {', '.join(missing)}" if missing else "present"))
    print_table(("what", "found"), rows)
    for name in [name for name, missing in found.extras.items() if missing]:
        print(f"extra {name}: {install_command(name)}")


@app.command
def bench(robot: str = "a1", json: Json = False) -> None:
    """Measure how fast this machine plays episodes, beside the raw physics and the authors' code. Twenty seconds.

    Physics is the paper's, or fast where it says so. `make bench` measures more, with targets.

    Args:
        robot: a1, go1, go2, a data sheet (.json), or a Python file that registers a robot.
        json: Print JSON.

    """
    from ncap.bench import measure, table
    from ncap.sim.robot import find_robot

    found = measure(find_robot(robot))
    if json:
        print_json(asdict(found))
    else:
        print_table(("what", "measured"), [(name, f"{value:,.2f}") for name, value in table(found)])
