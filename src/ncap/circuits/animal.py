"""The whole animal as one table: afferent feedback (AF), rhythm generation (RG), pattern formation (PF).

Afferents of a leg are summed for each of its half-centres; the rhythm generator is that of rhythm.py; motor neurons set
the targets of thigh and calf, and hips are held at 0. Forelegs share their AF and PF weights, and so do hind legs.

In the animal of the preset `default` the rhythm leads the body: the afferents' sums are bounded, so that they shift the
rhythm and never replace it, and steps grow with the command, as fast motor pools are recruited. It also has vestibular
reflexes, which keep the trunk level, and hips that move. That of `drive` can also turn and stop. Those of `paper` and
`released`, which are the paper's, have none of this.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.rhythm import AFFERENT_SUMS, COMMANDS, PRESETS, rhythm_spec
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.tables import load_circuit
from ncap.circuits.units import RectifierUnit, SumUnit, TanhUnit
from ncap.errors import unknown_name

Array = NDArray[np.float64]

JOINTS: Final = ("hip", "thigh", "calf")
"""Joints of a leg. A neuron of such a name is the motor neuron of that joint; that of a hip moves the leg outwards."""
SENSES: Final = (*(f"{joint} {kind}" for kind in ("position", "torque", "velocity") for joint in JOINTS), "foot")
"""What a leg feels, each in [-1, 1]."""
AFFERENTS: Final = tuple(f"{name}{sign}" for sign in "-+" for name in SENSES)
"""The afferent signals of a leg: what it feels, split into negative and positive parts."""
POSTURE: Final = ("roll", "roll rate", "pitch", "pitch rate")
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
    ("calf", "flexor"): -0.2,
    ("thigh", "extensor"): 0.3,
    ("calf", "extensor"): 0.8,
}
FAST_POOLS: Final = {"flexor": "fast_flexor", "extensor": "fast_extensor"}
"""For every half-centre the pool that the speed pathway recruits: it is silent at the command 0, and follows its
half-centre fully at the command 1."""
#: The same for an animal with fast pools: lift and stride grow together with the command.
LED_PATTERN: Final = {
    ("thigh", "flexor"): -0.6,
    ("calf", "flexor"): -0.6,
    ("thigh", "extensor"): 0.5,
    ("calf", "extensor"): 1.0,
    ("thigh", "fast_flexor"): -0.1,
    ("calf", "fast_flexor"): -0.4,
    ("thigh", "fast_extensor"): 0.3,
    ("calf", "fast_extensor"): 0.3,
}
#: The same for an animal whose speed is driven: small steps, which the fast pools enlarge from the command 0 on.
DRIVEN_PATTERN: Final = {
    ("thigh", "flexor"): -0.2,
    ("calf", "flexor"): -0.6,
    ("thigh", "extensor"): 0.15,
    ("calf", "extensor"): 0.8,
    ("thigh", "fast_flexor"): -0.7,
    ("calf", "fast_flexor"): -0.2,
    ("thigh", "fast_extensor"): 0.8,
    ("calf", "fast_extensor"): 0.3,
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

    That of `drive` has default's rhythm generator, rows for turning and stopping, and fast pools that are recruited
    from the lowest command on.
    """
    driven = preset == "drive"
    rhythm, led = rhythm_spec("default" if driven else preset), driven or preset == "default"
    sums = dict(zip(HALF_CENTRES, AFFERENT_SUMS, strict=True))
    afferent_rows = tuple(
        _trained(source=afferent, target=sums[half], weight=REFLEXES.get((afferent, half), 0.0))
        for half in HALF_CENTRES
        for afferent in AFFERENTS
    )
    pattern = DRIVEN_PATTERN if driven else LED_PATTERN if led else PATTERN
    pools = FAST_POOLS if led else {}
    pattern_rows = tuple(
        _trained(source=source, target=joint, weight=pattern[joint, source])
        for joint in MOVED
        for source in (*HALF_CENTRES, *pools.values())
    )
    hips = ("hip",) if led else ()
    posture_rows: tuple[Synapse, ...] = ()
    if led:
        posture_rows = (
            *(_trained(source=pool, target="hip", weight=0.0) for pool in pools.values()),
            *(
                replace(_trained(source=sense, target=joint, weight=weight), sign=0, tied_by="body")
                for (joint, sense), weight in VESTIBULAR.items()
            ),
        )
    loudest = {half: LOUDEST[half] if driven else 1.0 for half in HALF_CENTRES}
    pool_rows = tuple(
        Synapse(source=source, target=pool, weight=weight, sign=1)
        for half, pool in pools.items()
        for source, weight in ((half, 1.0), ("freq", loudest[half]))
    )
    limited = SumUnit(limit=AFFERENT_LIMIT) if led else SumUnit()
    spec = CircuitSpec(
        neurons=(
            *(
                Neuron(name=name, unit=limited, role=f"reflexes of the leg onto its {half}")
                for half, name in sums.items()
            ),
            *rhythm.neurons,
            *(
                Neuron(
                    name=pool, unit=RectifierUnit(), bias=-loudest[half], role=f"larger steps at speed, with the {half}"
                )
                for half, pool in pools.items()
            ),
            *(
                Neuron(name=joint, unit=TanhUnit(), trainable=True, tied_by="girdle", role=f"moves the {joint}")
                for joint in (*hips, *MOVED)
            ),
        ),
        synapses=(*afferent_rows, *rhythm.synapses, *pool_rows, *pattern_rows, *posture_rows),
        inputs=(*(Input(name=name) for name in (*AFFERENTS, *(POSTURE if led else ()))), *COMMANDS),
        plan=rhythm.plan,
        dt=rhythm.dt,
    )
    return _driven(spec) if driven else spec


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
    """The table of a preset, default, drive, paper or released, or of a file."""
    if name in CIRCUITS:
        return animal(name)
    if Path(name).suffix == ".json":
        return load_circuit(Path(name))
    raise unknown_name("circuit", name, (*CIRCUITS, "a .json file"))


def mirrored(spec: CircuitSpec) -> Array:
    """(site, joint) what turns the outputs of motor neurons into actions: right hips go outwards when negative."""
    sites = spec.plan.sites
    mirror = np.ones((len(sites), len(JOINTS)))
    if any(row.name == "hip" for row in spec.neurons):
        for site in spec.plan.groups.get("side", {}).get("R", ()):
            mirror[sites.index(site), JOINTS.index("hip")] = -1.0
    return mirror


def knock_outs(spec: CircuitSpec) -> tuple[str, ...]:
    """Names that `cut` takes for a table: pathways that it has, then single populations."""
    populations = spec.names
    pathways = [
        name
        for name, (members, routes) in PATHWAYS.items()
        if set(members) & set(populations) or set(routes) & {row.route for row in spec.synapses}
    ]
    return tuple(dict.fromkeys((*pathways, *populations)))


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
        if name in PATHWAYS and name in known:
            populations.update(set(PATHWAYS[name][0]) & rows)
            routes.update(PATHWAYS[name][1])
        elif name in known or name in singles:
            populations.add(name)
        elif name in keys:
            synapses.add(name)
        else:
            raise unknown_name("knock-out", name, known)
    return spec.without(populations, routes, synapses) if populations or routes or synapses else spec
