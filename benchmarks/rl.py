"""PPO's steps per second on the batched environment, beside stable-baselines3's SubprocVecEnv of single environments.

Both play the same task with the same networks, rollouts and updates. Wall-clock time counts, since the processes of
SubprocVecEnv work beside the one that is measured; the two take turns, so that the machine's load is the same for both.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from ncap.learn.gym_env import IDS
from ncap.learn.reinforcement import Reinforcement, make_learner

ENVIRONMENTS, STEPS, TURNS, THREADS = 16, 125, 3, 2


def one_environment() -> Any:
    return gymnasium.make(IDS["flat-walk"], disable_env_checker=True)


def usual() -> tuple[PPO, Callable[[], None]]:
    """stable-baselines3 as its documentation shows it: a process for every environment."""
    env: VecEnv = SubprocVecEnv([one_environment] * ENVIRONMENTS)
    return PPO("MlpPolicy", env, n_steps=STEPS, batch_size=STEPS, seed=0, device="cpu"), env.close


def ours() -> tuple[PPO, Callable[[], None]]:
    training = Reinforcement(task="flat-walk", algorithm="ppo", environments=ENVIRONMENTS)
    env, learner = make_learner(training, THREADS)
    env.begin(0)
    model: PPO = learner.model  # type: ignore[attr-defined]
    return model, env.close


def rates(model: PPO) -> tuple[float, float]:
    """(playing alone, playing and learning) of one rollout, control steps per second."""
    _, callback = model._setup_learn(ENVIRONMENTS * STEPS)
    assert model.env is not None
    started = time.perf_counter()
    model.collect_rollouts(model.env, callback, model.rollout_buffer, STEPS)
    played = time.perf_counter() - started
    model.train()
    return ENVIRONMENTS * STEPS / played, ENVIRONMENTS * STEPS / (time.perf_counter() - started)


def main() -> None:
    warnings.filterwarnings("ignore", module="stable_baselines3")
    models = {"SubprocVecEnv": usual(), "ours": ours()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in models}
    try:
        for model, _ in models.values():
            rates(model)  # the first rollout warms everything up
        for _ in range(TURNS):
            for name, (model, _) in models.items():
                found[name].append(rates(model))
    finally:
        for _, close in models.values():
            close()
    print(f"PPO on flat-walk, {ENVIRONMENTS} environments, control steps per second, best of {TURNS} in turns")
    best = {name: [max(values) for values in zip(*rows, strict=True)] for name, rows in found.items()}
    for name, (playing, learning) in best.items():
        how = f"{ENVIRONMENTS} processes" if name == "SubprocVecEnv" else f"one process, {THREADS} threads"
        print(f"  {name:<14} {how:<24} playing {playing:6.0f}   playing and learning {learning:6.0f}")
    gain = [mine / other for mine, other in zip(best["ours"], best["SubprocVecEnv"], strict=True)]
    print(f"  ours over theirs: playing {gain[0]:.1f}×, playing and learning {gain[1]:.1f}× (target 3)")


if __name__ == "__main__":
    main()
