"""Cost of the rhythm generator per individual and step, beside a plain Python loop over neurons."""

import time

from ncap.bench import circuit_microseconds
from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import rhythm_spec

POPULATIONS = (1, 64, 256, 1024)


def plain_loop_microseconds(steps: int = 300) -> float:
    """The same circuit as a loop over neurons and their synapses, µs per individual and step."""
    circuit = Circuit(rhythm_spec())
    incoming = [[(j, w) for j, w in enumerate(row) if w] for row in circuit.weights.tolist()]
    state = [0.0] * len(incoming)
    signals = [0.0] * circuit.weights.shape[1]
    signals[-1] = 1.0
    started = time.process_time()
    for _ in range(steps):
        for i, synapses in enumerate(incoming):
            drive = min(1.0, max(-1.0, sum(w * signals[j] for j, w in synapses)))
            state[i] += 0.4 * (drive - state[i])
        for i, value in enumerate(state):
            signals[i] = min(1.0, max(0.0, value))
    return (time.process_time() - started) / steps * 1e6


def main() -> None:
    print("rhythm generator, CPU µs per individual and circuit step (target: under 2 from 64 up, and constant)")
    plain = plain_loop_microseconds()
    print(f"  plain Python loop  {plain:8.2f}")
    for population in POPULATIONS:
        cost = min(circuit_microseconds(population, max(50, 60_000 // population)) for _ in range(3))
        print(f"  population {population:<6}  {cost:8.2f}   {plain / cost:6.1f}× the plain loop")


if __name__ == "__main__":
    main()
