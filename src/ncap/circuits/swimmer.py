"""The circuit of a swimmer as a table on a chain: Swimmer NCAP, after the nematode C. elegans.

At every joint two motor neurons of class B, dorsal and ventral, drive the muscle of their side and silence that of the
other. A pacemaker in the head drives the first pair by turns; every other pair hears how far the joint before it is
bent, so that a wave runs from head to tail. Neurons have no memory and respond within [0, 1]; signs are those of the
transmitters and are kept. Bhattasali, Zador and Engel (2022), with every weight at +1 or -1 before training.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Final, Literal

from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import OscillatorUnit, RectifierUnit, SumUnit
from ncap.errors import unknown_name
from ncap.plan import SITE, BodyPlan, chain

SWIMMERS: Final = ("swimmer", "swimmer-turning", "swimmer-unshared")
"""Tables by name: 4 weights; 6, with those of turning and speed; and 30, a weight of its own for every synapse."""
CONTROL_DT: Final = 0.03
"""Circuit step, which is the control step, s."""
SIDES: Final = {"dorsal": ("+", "right"), "ventral": ("-", "left")}
"""Sides of the body: the sign of a joint that is bent to it, and the command that turns to it."""
PACEMAKER: Final = OscillatorUnit(
    adaptation_time=3.6, active_time=0.86, quiet_time=0.86, active_scale=1.0, quiet_scale=1.0, tonic_drive=1.0
)
"""Active for 0.9 s and quiet for 0.9 s: a phase lasts a step longer than the way between the thresholds, as it begins
and ends at steps of 30 ms. Whatever its first phase is, it then switches every 30 steps."""
PATHWAYS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "proprioception": (("bend+", "bend-"), ()),
    "rhythm": (("head_dorsal", "head_ventral"), ()),
    "turning": (("turn_right", "turn_left"), ()),
}
"""What can be knocked out of a swimmer by one name: (populations, routes)."""
HEAD: Final = ("s1",)
"""Where the pacemaker is, and the neurons that turn: the joint behind the head."""


@cache
def swimmer(name: str = "swimmer", plan: BodyPlan | None = None) -> CircuitSpec:
    """The table of that name on a chain; by default that of six links, which has five joints."""
    if name not in SWIMMERS:
        raise unknown_name("circuit of a swimmer", name, SWIMMERS)
    turning = name == "swimmer-turning"
    spec = CircuitSpec(
        neurons=(*_neurons(), *(_turning_neurons() if turning else ())),
        synapses=(*_synapses(), *(_turning_synapses() if turning else ())),
        inputs=(Input(name="bend+"), Input(name="bend-"), *(_COMMANDS if turning else ())),
        plan=chain(5) if plan is None else plan,
        dt=CONTROL_DT,
    )
    return _unshared(spec) if name == "swimmer-unshared" else spec


_COMMANDS: Final = (
    Input(name="right", per="body", kind="command", rest=0.0),
    Input(name="left", per="body", kind="command", rest=0.0),
    Input(name="speed", per="body", kind="command"),
)
"""Turn to a side, and how fast: the brainstem command c where nobody names a speed."""


def _neurons() -> Iterator[Neuron]:
    instant = RectifierUnit()
    yield Neuron(name="pacemaker", unit=PACEMAKER, sites=HEAD, role="the rhythm of the head")
    yield Neuron(name="head_dorsal", unit=instant, sites=HEAD, role="active while the pacemaker is")
    yield Neuron(name="head_ventral", unit=instant, bias=1.0, sites=HEAD, role="active while the pacemaker is quiet")
    for side in SIDES:
        yield Neuron(name=f"B_{side}", unit=instant, role=f"motor neuron of the {side} muscle; hears the joint before")
    for side in SIDES:
        yield Neuron(name=f"muscle_{side}", unit=instant, role=f"bends the joint to the {side} side")
    yield Neuron(name="bend", unit=SumUnit(), role="torque of the joint: dorsal less ventral muscle")


def _synapses() -> Iterator[Synapse]:
    # an oscillator says between 0.5 and 1 while it is active: twice that is 1 for a neuron that goes no further
    yield Synapse(source="pacemaker", target="head_dorsal", weight=2.0, sign=1)
    yield Synapse(source="pacemaker", target="head_ventral", weight=-2.0, sign=-1)
    for side, (sign, _) in SIDES.items():
        yield _trained("proprioception", f"bend{sign}", f"B_{side}", 1, route="tailward")
    for side in SIDES:
        yield _trained("oscillator", f"head_{side}", f"B_{side}", 1)
    for side in SIDES:
        yield _trained("ipsilateral", f"B_{side}", f"muscle_{side}", 1)
    for side, other in zip(SIDES, reversed(SIDES), strict=True):
        yield _trained("contralateral", f"B_{other}", f"muscle_{side}", -1)
    yield Synapse(source="muscle_dorsal", target="bend", weight=1.0, sign=1)
    yield Synapse(source="muscle_ventral", target="bend", weight=-1.0, sign=-1)


def _turning_neurons() -> Iterator[Neuron]:
    for _, turn in SIDES.values():
        yield Neuron(name=f"turn_{turn}", unit=RectifierUnit(), sites=HEAD, role=f"turns to the {turn}")
    yield Neuron(
        name="slow", unit=RectifierUnit(), bias=1.0, role="silences B neurons, the more the slower it should be"
    )


def _turning_synapses() -> Iterator[Synapse]:
    yield Synapse(source="speed", target="slow", weight=-1.0, sign=-1)
    for side, (_, turn) in SIDES.items():
        yield Synapse(source=turn, target=f"turn_{turn}", weight=1.0, sign=1)
        yield _trained("turn", f"turn_{turn}", f"B_{side}", 1)
        yield _trained("speed", "slow", f"B_{side}", -1)


def _trained(shared: str, source: str, target: str, sign: Literal[1, -1], route: str = "same") -> Synapse:
    weight = float(sign)
    return Synapse(source=source, target=target, route=route, weight=weight, sign=sign, trainable=True, shared=shared)


def _unshared(spec: CircuitSpec) -> CircuitSpec:
    """The same table with a weight of its own for every connection that is trained."""
    rows = (replace(row, shared="", tied_by=SITE) if row.trainable else row for row in spec.synapses)
    return replace(spec, synapses=tuple(rows))


def usual_circuit(plan: BodyPlan, steered: bool) -> str:
    """The table that suits a body: one with commands to turn if it is steered."""
    if plan.kind == "chain":
        return "swimmer-turning" if steered else "swimmer"
    return "drive" if steered else "default"
