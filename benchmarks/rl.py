"""PPO on the batched environment beside stable-baselines3's SubprocVecEnv of single environments; what epochs cost.

Both play the same task with networks, rollouts and updates of the same size, and take turns. On a busy machine the
scheduler gives sixteen processes more than one, so steps per CPU-second of all processes together are the fair figure.
"""

import os
import time
from pathlib import Path
from typing import Any

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from ncap.envs import IDS
from ncap.learn.reinforcement import make_learner
from ncap.learn.settings import Training

ENVIRONMENTS, STEPS, TURNS, THREADS = 16, 125, 3, 2


def one_environment() -> Any:
    return gymnasium.make(IDS["flat-walk"], disable_env_checker=True)


def usual() -> PPO:
    """stable-baselines3 as its documentation shows it: a process for every environment."""
    env: VecEnv = SubprocVecEnv([one_environment] * ENVIRONMENTS)
    return PPO("MlpPolicy", env, n_steps=STEPS, batch_size=STEPS, seed=0, device="cpu")


def ours(physics: str) -> PPO:
    """Our environment in a physics preset: paper has steps of 1 ms, as the single environments have."""
    training = Training(task="flat-walk", algorithm="ppo", environments=ENVIRONMENTS, physics=physics)
    env, learner = make_learner(training, training.initial_policy(), THREADS)
    env.begin(0)
    model: PPO = learner.model  # type: ignore[attr-defined]
    return model


def cpu_seconds(env: VecEnv | None) -> float:
    """Of this process and the environments' own, while they live."""
    ticks = 0
    for process in getattr(env, "processes", ()):
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])  # in user and in system mode
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def rates(model: PPO) -> dict[str, float]:
    """Control steps per second of one rollout."""
    _, callback = model._setup_learn(ENVIRONMENTS * STEPS)
    assert model.env is not None
    cpu, wall = cpu_seconds(model.env), time.perf_counter()
    model.collect_rollouts(model.env, callback, model.rollout_buffer, STEPS)
    played = {"playing, CPU": cpu_seconds(model.env) - cpu, "playing, wall": time.perf_counter() - wall}
    model.train()
    learned = {"and learning, CPU": cpu_seconds(model.env) - cpu, "and learning, wall": time.perf_counter() - wall}
    return {name: ENVIRONMENTS * STEPS / seconds for name, seconds in (played | learned).items()}


def epoch_cost(algorithm: str, policy: str) -> float:
    """CPU-seconds of an epoch of 8,000 steps, the second, without its test episodes."""
    training = Training(task="flat-walk", algorithm=algorithm, policy=policy)
    _, learner = make_learner(training, training.initial_policy(), THREADS)
    learner.practise(0)
    started = time.process_time()
    learner.practise(1)
    return time.process_time() - started


def main() -> None:
    compare()
    print("CPU-seconds of an epoch of 8,000 steps on flat-walk, without test episodes")
    for algorithm, policy in (("ppo", "mlp"), ("ppo", "ncap"), ("d4pg", "mlp")):
        print(f"  {algorithm:<4} {policy:<4} {epoch_cost(algorithm, policy):6.1f}", flush=True)


def compare() -> None:
    """All arrangements in turns."""
    models = {"SubprocVecEnv, 1 ms": usual(), "ours, 1 ms": ours("paper"), "ours, fast": ours("fast")}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in models}
    for model in models.values():
        rates(model)  # the first rollout warms everything up
    for _ in range(TURNS):
        for name, model in models.items():
            found[name].append(rates(model))
    for model in models.values():
        assert model.env is not None
        model.env.close()
    print(
        f"PPO on flat-walk, {ENVIRONMENTS} environments, ours on {THREADS} threads,"
        f" control steps per second, best of {TURNS} in turns"
    )
    print(f"  {'':<20}" + "".join(f"{name:>21}" for name in models) + "   (target with fast: 3 times per CPU-second)")
    for kind in next(iter(found.values()))[0]:
        theirs, *mine = (max(row[kind] for row in rows) for rows in found.values())
        print(f"  {kind:<20}{theirs:21.0f}" + "".join(f"{rate:14.0f} = {rate / theirs:3.1f}×" for rate in mine))


if __name__ == "__main__":
    main()
