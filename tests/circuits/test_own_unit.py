"""A neuron type of one's own, defined here in a few lines, runs in a body and travels in files."""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from ncap.circuits.animal import SENSES, animal
from ncap.circuits.tables import describe_circuit, load_circuit, save_circuit
from ncap.circuits.units import UNITS
from ncap.errors import UserError
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import rollout
from ncap.tasks import TASKS


@dataclass(frozen=True, kw_only=True)
class TiringUnit:
    """A leaky neuron that inhibits itself by its own slow fatigue: τ v' = x - g f - v, τ_f f' = y - f, y = [v]₀¹."""

    instantaneous: ClassVar[bool] = False
    tau: float = 0.05
    fatigue_tau: float = 0.4
    fatigue_gain: float = 0.5

    @classmethod
    def group(cls, units, dt):
        return TiringGroup(*np.array([(dt / u.tau, dt / u.fatigue_tau, u.fatigue_gain) for u in units]).T)


@dataclass
class TiringGroup:
    fast: np.ndarray
    slow: np.ndarray
    gain: np.ndarray

    def start(self, individuals, rng):
        return np.zeros((individuals, len(self.fast))), np.zeros((individuals, len(self.fast)))

    def step(self, state, drive):
        voltage, fatigue = state
        voltage = voltage + self.fast * (drive - self.gain * fatigue - voltage)
        output = np.clip(voltage, 0.0, 1.0)
        return (voltage, fatigue + self.slow * (output - fatigue)), output


UNIT = TiringUnit()
WHOLE = animal("released")  # its circuit step is the control step, so that a recording has every step of it
SPEC = replace(
    WHOLE, neurons=tuple(replace(row, unit=UNIT) if row.name == "extensor" else row for row in WHOLE.neurons)
)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(UNITS, "tiring", TiringUnit)


def afferents(observation):
    """What the afferents of every leg add up to, by hand: observations (leg, sense) → {"afferent_flexor.FL": …}."""
    sums = defaultdict(float)
    for row in SPEC.synapses:
        if row.target.startswith("afferent"):
            sense, sign = SENSES.index(row.source[:-1]), (1.0 if row.source.endswith("+") else -1.0)
            for leg, site in enumerate(SPEC.plan.sites):
                sums[f"{row.target}.{site}"] += row.weight * max(0.0, sign * observation[leg, sense])
    return sums


@pytest.mark.usefixtures("registered")
def test_it_walks_in_a_body_and_follows_its_equation():
    policy, task = NCAPPolicy(circuit=SPEC, command=0.4), replace(TASKS["flat-walk"], episode_seconds=1.0)
    controller = policy.bind(policy.space.initial[None])
    played = rollout(task, controller, [3], record=("neurons", "observation"))
    assert not played.fell[0]
    neurons, observation = played.signals["neurons"][0], played.signals["observation"][0]
    circuit, state = controller.circuit, controller.reset([3])
    signals = dict(zip((*circuit.neurons, *circuit.inputs), state.signals[0], strict=False))
    arriving = [
        (row.weight, source, target)
        for row in SPEC.synapses
        if row.target == "extensor"
        for source, target in SPEC.connections(row)
    ]
    voltage, fatigue = (
        dict(zip(SPEC.plan.sites, part[0], strict=True)) for part in circuit.state_of(state, "extensor")
    )
    for now, felt in zip(neurons, observation, strict=True):
        for site in SPEC.plan.sites:
            drive = SPEC.neuron("extensor").bias
            drive += sum(weight * signals[".".join(source)] for weight, source, (_, at) in arriving if at == site)
            voltage[site] += 0.030 / UNIT.tau * (drive - UNIT.fatigue_gain * fatigue[site] - voltage[site])
            output = min(1.0, max(0.0, voltage[site]))
            fatigue[site] += 0.030 / UNIT.fatigue_tau * (output - fatigue[site])
            assert now[circuit.neurons.index(f"extensor.{site}")] == pytest.approx(output, abs=1e-12)
        signals = dict(zip(circuit.neurons, now, strict=True)) | afferents(felt)
    extensors = neurons[:, circuit.columns("extensor")]
    assert (np.ptp(extensors, axis=0) > 0.2).all()  # it did something worth comparing


@pytest.mark.usefixtures("registered")
def test_it_travels_in_a_file(tmp_path):
    save_circuit(SPEC, tmp_path / "tiring.json")
    assert '"type": "tiring"' in (tmp_path / "tiring.json").read_text()
    assert load_circuit(tmp_path / "tiring.json") == SPEC


def test_a_type_without_a_name_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match="neuron type TiringUnit is not in"):
        describe_circuit(SPEC)
