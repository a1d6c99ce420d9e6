"""Knock out V0v, the neurons that make a trot: in the circuit by itself, and in a walking body.

Run it with `python examples/knock_out.py`; to watch it, `ncap watch untrained --without V0v`.
"""

import tyro

import ncap


def main(
    without: str = "V0v",
    commands: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.9),
    policy: str = "ncap-flat-walk",
    episodes: int = 3,
) -> None:
    """Show the gait of the circuit alone at several commands, and how a trained policy walks, intact and cut."""
    print(f"the circuit alone\n{'c':>4}  {'intact':<10} without {without}")
    for command in commands:
        intact, cut = (ncap.rhythm(command=command, without=names).gait.label for names in ((), (without,)))
        print(f"{command:4.2f}  {intact:<10} {cut}")
    print(f"\n{policy} in its body")
    for row in ncap.lesion(policy, [without], seeds=range(episodes), threads=2):
        name = f"without {row.without}" if row.without else "intact"
        print(f"{name:<14} {row.gait} in {row.gait_share:.0%}, {row.speed_mean:.2f} m/s, {row.falls} falls")


if __name__ == "__main__":
    tyro.cli(main)
