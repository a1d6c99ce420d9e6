import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from ncap.learn.d4pg import D4PGLearner, Replay, Settings, n_step_return, project
from ncap.policies.mlp import MLPPolicy


def projected(probabilities, reward, discount, atoms):
    found = project(
        torch.tensor([probabilities]), torch.tensor([reward]), torch.tensor([discount]), torch.tensor(atoms)
    )
    return found[0].tolist()


def test_a_distribution_between_atoms_is_shared_by_its_neighbours():
    # atoms 0, 1, 2 move to 0.5 + 0.5 · (0, 1, 2) = 0.5, 1, 1.5:
    # 0.2 at 0.5 gives 0.1 to atoms 0 and 1; 0.5 at 1 stays there; 0.3 at 1.5 gives 0.15 to atoms 1 and 2
    assert projected([0.2, 0.5, 0.3], 0.5, 0.5, [0.0, 1.0, 2.0]) == pytest.approx([0.1, 0.75, 0.15])


def test_what_falls_beside_the_atoms_goes_to_the_ends():
    # a fall with reward -10 and no future puts everything on the lowest atom, a huge reward on the highest
    assert projected([0.2, 0.5, 0.3], -10.0, 0.0, [0.0, 1.0, 2.0]) == pytest.approx([1.0, 0.0, 0.0])
    assert projected([0.2, 0.5, 0.3], 5.0, 1.0, [0.0, 1.0, 2.0]) == pytest.approx([0.0, 0.0, 1.0])


def test_a_projection_keeps_mass_and_mean_inside_the_range():
    rng = torch.Generator().manual_seed(0)
    probabilities = torch.rand(20, 51, generator=rng, dtype=torch.float64)
    probabilities /= probabilities.sum(dim=1, keepdim=True)
    atoms = torch.linspace(0, 150, 51, dtype=torch.float64)
    rewards, discounts = torch.rand(20, generator=rng, dtype=torch.float64) * 5, torch.full((20,), 0.95).double()
    found = project(probabilities, rewards, discounts, atoms)
    assert torch.allclose(found.sum(dim=1), torch.ones(20).double())
    # 150 · 0.95 + 5 < 150, so nothing is clipped, and sharing between neighbours keeps the mean
    assert torch.allclose(found @ atoms, rewards + discounts * (probabilities @ atoms))


def test_n_step_returns_by_hand():
    rewards = np.array([[1, 1, 1, 1], [2, 2, 2, 2], [4, 4, 4, 4]], np.float32)
    ended, terminated = np.zeros((3, 4), bool), np.zeros((3, 4), bool)
    ended[1, 1] = terminated[1, 1] = True  # fell in the second step
    ended[1, 2] = True  # the episode's time was over in the second step
    ended[2, 3] = terminated[2, 3] = True  # fell in the last step
    found = n_step_return(rewards, terminated, ended)
    whole, cut = 1 + 0.99 * 2 + 0.99**2 * 4, 1 + 0.99 * 2
    assert found.reward == pytest.approx([whole, cut, cut, whole])
    assert found.discount == pytest.approx([0.99**3, 0.0, 0.99**2, 0.0])
    assert found.last.tolist() == [2, 1, 1, 2]


def test_a_replay_never_joins_steps_across_an_end_or_across_its_own_seam():
    # one environment that counts: step t goes from t to t + 1 with reward 1; every fifth step ends an episode
    replay = Replay(slots=12, environments=1, observation_size=1, action_size=1)
    for t in range(31):
        replay.add(
            observation=np.array([[t]]),
            action=np.array([[t]]),
            reward=np.ones(1),
            following=np.array([[t + 1]]),
            terminated=np.zeros(1, bool),
            ended=np.array([t % 5 == 4]),
        )
    observed, acted, found, after = replay.sample(np.random.default_rng(0), 500, 3)
    assert set(observed[:, 0]) == set(range(19, 29))  # the 12 last are 19 … 30, of which 29 and 30 lack successors
    assert np.array_equal(observed, acted)
    steps = np.minimum(3, 5 - observed[:, 0].astype(int) % 5)
    assert np.array_equal(after[:, 0], observed[:, 0] + steps)
    assert found.reward == pytest.approx((1 - 0.99**steps) / 0.01)
    assert found.discount == pytest.approx(0.99**steps)


def test_it_learns_to_go_to_the_middle(point_env):
    env = point_env()
    settings = Settings(highest=110.0, batch_size=64, learning_rate=1e-3)
    learner = D4PGLearner(env, MLPPolicy(hidden=(32, 32)), settings, seed=0)

    def act(observation):
        with torch.no_grad():
            return learner.networks.act(torch.from_numpy(observation)).numpy()

    assert env.score(act) == pytest.approx(0.5, abs=0.2)
    for epoch in range(12):
        learner.practise(epoch)
    assert env.score(act) > 0.85


def test_the_targets_go_a_twentieth_of_the_way_at_an_update(point_env):
    learner = D4PGLearner(point_env(), MLPPolicy(hidden=(4,)), Settings(tau=0.05), seed=0)
    learner.practise(0)  # the first epoch fills the replay, without an update
    before = learner.tensors()
    learner._update(np.random.default_rng(0))
    after = learner.tensors()
    for trained in [name for name in before if name.startswith(("net.actor", "net.critic"))]:
        target = trained.replace("net.", "net.target_")
        assert np.array_equal(before[target], before[trained])
        assert not np.array_equal(after[trained], before[trained])
        assert after[target] == pytest.approx(0.95 * before[target] + 0.05 * after[trained], abs=1e-7)
