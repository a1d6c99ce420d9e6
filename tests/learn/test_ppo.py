import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from ncap.learn import ppo
from ncap.learn.ncap_actor import NCAPActor
from ncap.learn.vec_env import DRIVES, RhythmDrive, flat_state, unflat_state
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy

CIRCUIT = NCAPPolicy(command=0.2)


def test_it_learns_to_go_to_the_middle(point_env):
    env = point_env(ppo.REWARD_SCALE)
    settings = ppo.Settings(rate=1e-2, noise=0.5, passes=5, rollouts=1)
    learner = ppo.PPOLearner(env, MLPPolicy(hidden=(16,)), settings, seed=0)

    def act(observation):
        with torch.no_grad():
            return learner.actor.means(torch.from_numpy(observation)).numpy()

    assert env.score(act) == pytest.approx(0.5, abs=0.2)
    for epoch in range(14):
        learner.practise(epoch)
    assert env.score(act) > 0.85


def random_state(individuals, seed=0):
    """A circuit's state after some steps with random inputs."""
    rng = np.random.default_rng(seed)
    state = CIRCUIT.circuit.reset(rng, individuals)
    for _ in range(20):
        state = CIRCUIT.circuit.step(state, rng.uniform(0, 1, (individuals, 12)))
    return state


def random_theta(seed=0):
    space = CIRCUIT.space
    return space.constrain(space.initial + 0.3 * np.random.default_rng(seed).standard_normal(space.size))


def actor_with(theta):
    actor = NCAPActor(CIRCUIT)
    with torch.no_grad():
        actor.theta.copy_(torch.from_numpy(theta))
    return actor


def test_the_circuit_in_torch_acts_as_the_controller_does():
    rng, state = np.random.default_rng(1), random_state(50)
    seen = rng.uniform(-1, 1, (50, 4, 10))
    actor = actor_with(random_theta())
    observation = np.concatenate((seen.reshape(50, 40), flat_state(state)), axis=1).astype(np.float32)
    with torch.no_grad():
        actions, means = actor.act(torch.from_numpy(observation), torch.zeros(50, 16))
    policy, theta = actor.exported()
    after, expected = policy.bind(np.tile(theta, (50, 1))).act(state, seen)
    assert torch.equal(actions, means)
    assert np.abs(actions[:, DRIVES:].numpy().reshape(50, 4, 2) - expected[..., 1:]).max() < 1e-6
    inputs = after.signals[:, -13:-5].reshape(50, 2, 4).transpose(0, 2, 1).reshape(50, 8)  # as the circuit was driven
    assert np.abs(actions[:, :DRIVES].numpy() - inputs).max() < 2e-6


def test_the_environment_steps_the_rhythm_as_the_controller_does():
    interface = RhythmDrive(CIRCUIT, 3)
    controller = CIRCUIT.bind(np.tile(random_theta(), (3, 1)))
    actor = actor_with(random_theta())
    rng, state = np.random.default_rng(2), controller.reset([4, 5, 6])
    interface.start(np.arange(3), [4, 5, 6])
    for _ in range(40):
        seen = rng.uniform(-1, 1, (3, 4, 10))
        observation = torch.from_numpy(interface.observation(seen))
        with torch.no_grad():
            actions, _ = actor.act(observation, torch.zeros(3, 16))
        state, expected = controller.act(state, seen)
        assert np.abs(interface.joints(actions.numpy().astype(np.float64)) - expected).max() < 1e-5
    interface.start(np.array([1]), [9])
    alone = CIRCUIT.bind(random_theta()[None]).reset([9])
    assert np.array_equal(interface._state.adaptation[1], alone.adaptation[0])
    assert interface._state.adaptation[0] == pytest.approx(state.adaptation[0], abs=1e-6)


def test_a_flat_state_is_the_state():
    state = random_state(5)
    for mine, again in zip(state, unflat_state(CIRCUIT.circuit, flat_state(state)), strict=True):
        assert np.array_equal(mine, again)
        assert mine.dtype == again.dtype


def test_the_means_of_an_action_are_those_it_was_drawn_around():
    # the pattern's means depend on the drives that were drawn, not on their means
    actor = actor_with(random_theta())
    observation = np.concatenate((np.random.default_rng(3).uniform(-1, 1, (50, 40)), flat_state(random_state(50))), 1)
    seen = torch.from_numpy(observation.astype(np.float32))
    with torch.no_grad():
        actions, means = actor.act(seen, torch.randn(50, 16, generator=torch.Generator().manual_seed(0)))
        assert torch.equal(actor.means(seen, actions), means)
        assert not torch.equal(actor.means(seen, torch.zeros(50, 16)), means)


def test_the_gradient_of_a_probability_reaches_afferents_and_pattern():
    actor = actor_with(random_theta())
    observation = np.concatenate((np.random.default_rng(3).uniform(-1, 1, (50, 40)), flat_state(random_state(50))), 1)
    seen = torch.from_numpy(observation.astype(np.float32))
    with torch.no_grad():
        actions, _ = actor.act(seen, 0.1 * torch.randn(50, 16, generator=torch.Generator().manual_seed(0)))

    def log_probability():
        return -0.5 * ((actions - actor.means(seen, actions)) ** 2).sum()

    log_probability().backward()
    assert (actor.theta.grad != 0).sum() == actor.theta.numel()
    for i in (3, 45, 81, 91):  # in AF.fore, AF.hind, PF and a bias
        with torch.no_grad():
            actor.theta[i] += 1e-2
            above = log_probability()
            actor.theta[i] -= 2e-2
            below = log_probability()
            actor.theta[i] += 1e-2
        assert actor.theta.grad[i].item() == pytest.approx(((above - below) / 2e-2).item(), rel=0.02, abs=2e-3)


def test_weights_keep_their_signs_after_every_step_of_the_optimiser():
    walker = ppo.Walker(*_spaces(), None, False, NCAPActor(CIRCUIT), ppo.SETTINGS["ncap"])
    signs = walker.actor.signs
    walker.actor.theta.grad = 1.0 * signs  # drives every constrained weight towards 0 and beyond
    walker.optimizer.param_groups[0]["lr"] = 0.7
    for _ in range(3):
        walker.optimizer.step()
    assert (walker.actor.theta * signs >= 0).all()
    assert (walker.actor.theta[signs != 0] == 0).all()


def _spaces():
    from gymnasium import spaces

    limits = RhythmDrive.action_limits
    return spaces.Box(-np.inf, np.inf, (RhythmDrive(CIRCUIT, 1).observation_size,)), spaces.Box(-limits, limits)


def test_the_probability_of_an_action_is_the_normal_density():
    walker = ppo.Walker(*_spaces(), None, False, NCAPActor(CIRCUIT), ppo.SETTINGS["ncap"])
    observation = torch.from_numpy(
        np.concatenate((np.zeros((1, 40)), flat_state(random_state(1))), axis=1).astype(np.float32)
    )
    torch.manual_seed(0)
    with torch.no_grad():
        actions, values, log_probability = walker(observation)
        again_values, again, entropy = walker.evaluate_actions(observation, actions)
        normal = torch.distributions.Normal(walker.actor.means(observation, actions), 0.1)
    assert log_probability.item() == pytest.approx(normal.log_prob(actions).sum().item(), rel=1e-5)
    assert again.item() == log_probability.item()
    assert entropy.item() == pytest.approx(normal.entropy().sum().item(), rel=1e-5)
    assert again_values.item() == values.item()
