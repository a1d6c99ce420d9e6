"""The whole animal as one table: afferent feedback (AF), rhythm generation (RG), pattern formation (PF).

Afferents of a leg are summed for each of its half-centres; the rhythm generator is that of rhythm.py; motor neurons set
the targets of thigh and calf, and hips are held at 0. Forelegs share their AF and PF weights, and so do hind legs.

In the animal of the preset `default` the rhythm leads the body: the afferents' sums are bounded, so that they shift the
rhythm and never replace it; thighs follow their half-centres later than calves, so that a foot is lifted before it
swings and set down before it pushes; and steps grow with the command, as fast motor pools are recruited. It also has
vestibular reflexes, which keep the trunk level, and hips that move. That of `drive` can also turn and stop. Those of
`paper` and `released`, which are the paper's, have none of this.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.rhythm import AFFERENT_SUMS, COMMANDS, PRESETS, rhythm_spec
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.swimmer import PATHWAYS as SWIMMING
from ncap.circuits.swimmer import SWIMMERS, swimmer
from ncap.circuits.tables import load_circuit
from ncap.circuits.units import BasicUnit, RectifierUnit, SumUnit, TanhUnit
from ncap.errors import unknown_name
from ncap.plan import QUADRUPED

Array = NDArray[np.float64]

JOINTS: Final = QUADRUPED.joints
"""Joints of a leg. A neuron of such a name is the motor neuron of that joint; that of a hip moves the leg outwards."""
SENSES: Final = QUADRUPED.senses
"""What a leg feels, each in [-1, 1]."""
AFFERENTS: Final = tuple(f"{name}{sign}" for sign in "-+" for name in SENSES)
"""The afferent signals of a leg: what it feels, split into negative and positive parts."""
POSTURE: Final = QUADRUPED.posture
"""What a leg knows of the trunk: how far and how fast its side, and its girdle, sinks. Positive and negative: a signal
stands for the two vestibular neurons of a plane, which act against each other (lamprey: Deliagina and others 2008)."""
HALF_CENTRES: Final = ("flexor", "extensor")
MOVED: Final = ("thigh", "calf")
"""The joints that the pattern formation moves."""

#: What is known of reflexes: (afferent, half-centre) → initial weight, whose sign is kept. Others start at 0, free.
REFLEXES: Final = {
    ("thigh position+", "flexor"): 1.0,
    ("calf torque-", "flexor"): -1.0,
    ("hip torque+", "flexor"): -1.0,
    ("thigh torque+", "flexor"): -1.0,
    ("foot+", "flexor"): -1.0,
    ("thigh position-", "extensor"): 1.0,
    ("calf torque-", "extensor"): 1.0,
    ("hip torque+", "extensor"): 1.0,
    ("thigh torque+", "extensor"): 1.0,
    ("foot+", "extensor"): 1.0,
}
#: (joint, half-centre) → initial weight of the paper, whose sign is kept.
PATTERN: Final = {
    ("thigh", "flexor"): -0.5,
    ("thigh", "extensor"): 0.3,
    ("calf", "flexor"): -0.2,
    ("calf", "extensor"): 0.8,
}
LATE: Final = {"flexor": "late_flexor", "extensor": "late_extensor"}
"""For every half-centre the neuron that follows it later, and moves the thigh."""
LATE_TIME: Final = 0.25
"""T_v of those neurons, s: they have gone half of the way to what their half-centre says after 43 ms."""
FAST_POOLS: Final = {
    **{half: f"fast_{half}" for half in HALF_CENTRES},
    **{late: f"fast_{late}" for late in LATE.values()},
}
"""For every half-centre, and its late neuron, the pool that the speed pathway recruits: it is silent at the command 0,
and follows fully at the command 1."""
#: (joint, neuron) → initial weight in an animal that its rhythm leads: calves at once, thighs later, and steps that the
#: fast pools enlarge. Signs are kept.
LED_PATTERN: Final = {
    ("thigh", "late_flexor"): -0.3,
    ("thigh", "late_extensor"): 0.25,
    ("thigh", "fast_late_flexor"): -1.2,
    ("thigh", "fast_late_extensor"): 1.2,
    ("calf", "flexor"): -0.8,
    ("calf", "extensor"): 1.1,
    ("calf", "fast_flexor"): -0.4,
    ("calf", "fast_extensor"): 0.4,
}
LOUDEST: Final = {"flexor": 0.9, "extensor": 0.6}
"""Largest activity of a half-centre, about."""
#: Vestibular reflexes: (joint, what has sunk) → initial weight. When the trunk falls over a side, the hips turn against
#: it; a girdle that sinks is pushed up, as vestibular neurons excite extensors (Murray and others 2018).
VESTIBULAR: Final = {
    ("hip", "roll"): 0.0,
    ("hip", "roll rate"): -0.5,
    ("calf", "roll"): 0.0,
    ("calf", "roll rate"): 0.0,
    ("calf", "pitch"): 0.3,
    ("calf", "pitch rate"): 0.0,
}
#: Turning: a neuron that hears one half-centre and one side's turn command, and what it does to the hip. A foreleg on
#: the side of the turn swings outwards and pushes inwards, one on the other side swings inwards and pushes outwards
#: (opening and closing steps: Gruntman and others 2007); hind legs do the opposite, so that the trunk turns about its
#: middle. name → (half-centre, routes from the turning neuron to a foreleg and to a hind leg, sign on the hip). Without
#: a turn command they are silent, as the bias outweighs the most that a half-centre says (LOUDEST).
STEERING: Final[Mapping[str, tuple[str, tuple[str, str], Literal[1, -1]]]] = {
    "open_swing": ("flexor", ("same", "diag-down"), 1),
    "close_stance": ("extensor", ("same", "diag-down"), -1),
    "close_swing": ("flexor", ("cross", "side-down"), -1),
    "open_stance": ("extensor", ("cross", "side-down"), 1),
}
STEERING_WEIGHT: Final = 1.5
"""Initial weight of a steering neuron on its hip."""
STOPPING_WEIGHT: Final = -3.0
"""Weight of the stop command on both half-centres."""
STEERING_COMMANDS: Final = (
    Input(name="turn", per="side", kind="command", rest=0.0),
    Input(name="stop", per="body", kind="command", rest=0.0),
)
"""Turn to a side (Chx10 neurons of one side: Cregg and others 2020), and stop (of both: Bouvier and others 2015)."""
AFFERENT_LIMIT: Final = 0.03
"""Largest drive that the afferents of a leg give to a half-centre of an animal that its rhythm leads."""

CIRCUITS: Final = ("default", "drive", *(preset for preset in PRESETS if preset != "default"))
"""Tables of whole animals, by name."""

#: What can be knocked out by one name, beside single rows: (populations, routes).
PATHWAYS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "V0": (("cross_V0d", "diag_V0d", "diag_V0v"), ()),
    "V0d": (("cross_V0d", "diag_V0d"), ()),
    "V0v": (("diag_V0v",), ()),
    "V3": (("cross_V3f", "cross_V3e", "diag_V3a"), ()),
    "diagonal": (("diag_V0d", "diag_V0v", "diag_In2", "diag_V3a"), ()),
    "homolateral": ((), ("side-down", "side-up")),
    "afferents": (AFFERENT_SUMS, ()),
    "vestibular": (POSTURE, ()),
    "turning": (("chx10",), ()),
}


@cache
def animal(preset: str = "default") -> CircuitSpec:
    """The whole table around the rhythm generator of a preset: the paper's 92 trained numbers, in default 20 more.

    That of `drive` is default's with rows for turning and stopping.
    """
    if preset == "drive":
        return _driven(animal("default"))
    rhythm, led = rhythm_spec(preset), preset == "default"
    sums = dict(zip(HALF_CENTRES, AFFERENT_SUMS, strict=True))
    limited = SumUnit(limit=AFFERENT_LIMIT) if led else SumUnit()
    motors = (*(("hip",) if led else ()), *MOVED)
    return CircuitSpec(
        neurons=(
            *(
                Neuron(name=name, unit=limited, role=f"reflexes of the leg onto its {half}")
                for half, name in sums.items()
            ),
            *rhythm.neurons,
            *(_led_neurons() if led else ()),
            *(
                Neuron(name=joint, unit=TanhUnit(), trainable=True, tied_by="girdle", role=f"moves the {joint}")
                for joint in motors
            ),
        ),
        synapses=(
            *(
                _trained(source=afferent, target=sums[half], weight=REFLEXES.get((afferent, half), 0.0))
                for half in HALF_CENTRES
                for afferent in AFFERENTS
            ),
            *rhythm.synapses,
            *(_led_synapses() if led else ()),
            *(
                _trained(source=source, target=joint, weight=weight)
                for (joint, source), weight in (LED_PATTERN if led else PATTERN).items()
            ),
            *(_posture_synapses() if led else ()),
        ),
        inputs=(*(Input(name=name) for name in (*AFFERENTS, *(POSTURE if led else ()))), *COMMANDS),
        plan=rhythm.plan,
        dt=rhythm.dt,
    )


def _led_neurons() -> Iterator[Neuron]:
    """Neurons between half-centres and motor neurons: late ones, and fast pools."""
    for half, late in LATE.items():
        role = f"moves the thigh later than the calf, with the {half}"
        yield Neuron(name=late, unit=BasicUnit(voltage_time=LATE_TIME), role=role)
    for source, pool in FAST_POOLS.items():
        role = f"larger steps at speed, with the {source}"
        yield Neuron(name=pool, unit=RectifierUnit(), bias=-_loudest(source), role=role)


def _led_synapses() -> Iterator[Synapse]:
    """What those hear."""
    for half, late in LATE.items():
        yield Synapse(source=half, target=late, weight=1.0, sign=1)
    for source, pool in FAST_POOLS.items():
        yield Synapse(source=source, target=pool, weight=1.0, sign=1)
        yield Synapse(source="freq", target=pool, weight=_loudest(source), sign=1)


def _loudest(source: str) -> float:
    """Largest activity of a half-centre, or of its late neuron, about."""
    return LOUDEST[source.removeprefix("late_")]


def _posture_synapses() -> Iterator[Synapse]:
    """What moves hips, and vestibular reflexes."""
    for half in HALF_CENTRES:
        yield _trained(source=FAST_POOLS[half], target="hip", weight=0.0)
    for (joint, sense), weight in VESTIBULAR.items():
        yield replace(_trained(source=sense, target=joint, weight=weight), sign=0, tied_by="body")


def _driven(walking: CircuitSpec) -> CircuitSpec:
    """A walking animal's table with rows for turning and stopping."""
    relay = Neuron(
        name="chx10", unit=SumUnit(), sites=walking.plan.groups["girdle"]["fore"], role="turns the animal to its side"
    )
    steering = tuple(
        Neuron(name=name, unit=RectifierUnit(), bias=-LOUDEST[half], role=f"moves the foot for a turn, with the {half}")
        for name, (half, _, _) in STEERING.items()
    )
    rows = [Synapse(source="turn", target=relay.name, weight=1.0, sign=1)]
    for name, (half, routes, sign) in STEERING.items():
        rows.append(Synapse(source=half, target=name, weight=1.0, sign=1))
        rows += [Synapse(source=relay.name, target=name, route=to, weight=LOUDEST[half], sign=1) for to in routes]
        rows.append(_trained(source=name, target="hip", weight=sign * STEERING_WEIGHT))
    rows += [Synapse(source="stop", target=half, weight=STOPPING_WEIGHT, sign=-1) for half in HALF_CENTRES]
    return replace(
        walking,
        neurons=(*walking.neurons, relay, *steering),
        synapses=(*walking.synapses, *rows),
        inputs=(*walking.inputs, *STEERING_COMMANDS),
    )


def _trained(source: str, target: str, weight: float) -> Synapse:
    sign: Literal[1, -1, 0] = 1 if weight > 0 else -1 if weight < 0 else 0
    return Synapse(source=source, target=target, weight=weight, sign=sign, trainable=True, tied_by="girdle")


def leads(spec: CircuitSpec) -> bool:
    """Whether the rhythm of a table leads its legs: they have extensors, and what afferents add up to is bounded."""
    sums = [row.unit for row in spec.neurons if any(row.name in level for level in spec.before)]
    bounded = bool(sums) and all(isinstance(unit, SumUnit) and unit.limit is not None for unit in sums)
    return bounded and any(row.name == "extensor" and spec.sites_of(row) == spec.plan.sites for row in spec.core)


def find_circuit(name: str) -> CircuitSpec:
    """The table of a preset, default, drive, paper or released, of a swimmer with six links, or of a file."""
    if name in SWIMMERS:
        return swimmer(name)
    if name in CIRCUITS:
        return animal(name)
    if Path(name).suffix == ".json":
        return load_circuit(Path(name))
    raise unknown_name("circuit", name, (*CIRCUITS, *SWIMMERS, "a .json file"))


def mirrored(spec: CircuitSpec) -> Array:
    """(site, joint) what turns the outputs of motor neurons into actions: right hips go outwards when negative."""
    plan, sites = spec.plan, spec.plan.sites
    mirror = np.ones((len(sites), len(plan.joints)))
    if "hip" in plan.joints and any(row.name == "hip" for row in spec.neurons):
        for site in plan.groups.get("side", {}).get("R", ()):
            mirror[sites.index(site), plan.joints.index("hip")] = -1.0
    return mirror


def pathways(spec: CircuitSpec) -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """What can be knocked out by one name in an animal of this body: (populations, routes)."""
    return SWIMMING if spec.plan.kind == "chain" else PATHWAYS


def knock_outs(spec: CircuitSpec) -> tuple[str, ...]:
    """Names that `cut` takes for a table: pathways that it has, then single populations."""
    populations = spec.names
    found = [
        name
        for name, (members, routes) in pathways(spec).items()
        if set(members) & set(populations) or set(routes) & {row.route for row in spec.synapses}
    ]
    return tuple(dict.fromkeys((*found, *populations)))


def cut(spec: CircuitSpec, names: Iterable[str]) -> CircuitSpec:
    """The table after knock-outs: pathways (V0, homolateral, afferents), populations, single neurons, synapse keys."""
    populations: set[str] = set()
    routes: set[str] = set()
    synapses: set[str] = set()
    known = knock_outs(spec)
    singles = {f"{row.name}.{site}" for row in spec.neurons for site in spec.sites_of(row)}
    keys = {row.key for row in spec.synapses}
    rows = set(spec.names)
    for name in names:
        if name in pathways(spec) and name in known:
            members, along = pathways(spec)[name]
            populations.update(set(members) & rows)
            routes.update(along)
        elif name in known or name in singles:
            populations.add(name)
        elif name in keys:
            synapses.add(name)
        else:
            raise unknown_name("knock-out", name, known)
    return spec.without(populations, routes, synapses) if populations or routes or synapses else spec
