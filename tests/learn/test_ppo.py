import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from ncap.circuits.animal import AFFERENT_LIMIT, animal
from ncap.errors import UserError
from ncap.learn import ppo
from ncap.learn.interfaces import CoreDrive, RhythmDrive
from ncap.learn.ncap_actor import NCAPActor
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy

pytestmark = pytest.mark.usefixtures("one_thread")
CIRCUIT = NCAPPolicy(command=0.7)  # at which fast pools are active
PAPER = NCAPPolicy(command=0.7, circuit=animal("paper"))
DRIVES = 4 * 2  # a sum of afferents for the flexor and the extensor of every leg
ACTIONS = DRIVES + 4 * 3  # and the motor neurons of hip, thigh and calf
SEEN = 4 * 14  # what legs feel themselves, and the posture


def test_it_learns_to_go_to_the_middle(point_env):
    env = point_env(ppo.REWARD_SCALE)
    settings = ppo.Settings(learning_rate=1e-2, noise=0.5, n_epochs=5, rollouts=1)
    learner = ppo.PPOLearner(env, MLPPolicy(hidden=(16,), senses=1, joints=(1, 1), activation="tanh"), settings, seed=0)

    def act(observation):
        with torch.no_grad():
            return learner.actor.means(torch.from_numpy(observation)).numpy()

    assert env.score(act) == pytest.approx(0.5, abs=0.2)
    for epoch in range(14):
        learner.practise(epoch)
    assert env.score(act) > 0.85


def random_state(individuals, seed=0, circuit=CIRCUIT):
    """A circuit's state after some steps with random inputs."""
    rng = np.random.default_rng(seed)
    state = circuit.core.reset(individuals, rng)
    for _ in range(20):
        state = circuit.core.step(state, rng.uniform(0, 1, (individuals, 12)))
    return state


def random_theta(seed=0, space=CIRCUIT.space):
    return space.constrain(space.initial + 0.3 * np.random.default_rng(seed).standard_normal(space.size))


def actor_with(theta, circuit=CIRCUIT):
    actor = NCAPActor(circuit)
    with torch.no_grad():
        actor.theta.copy_(torch.from_numpy(theta))
    return actor


@pytest.mark.parametrize("circuit", [CIRCUIT, PAPER], ids=["default", "paper"])
def test_the_circuit_in_torch_acts_as_the_controller_does(circuit):
    rng, state = np.random.default_rng(1), random_state(50, circuit=circuit)
    senses, moved = (14, slice(None)) if circuit is CIRCUIT else (10, slice(1, None))  # the paper's hips are held
    seen = rng.uniform(-1, 1, (50, 4, senses))
    seen[..., :10] *= rng.choice([0.01, 1.0], (50, 1, 1))  # within the afferents' limit and beyond
    actor = actor_with(random_theta(space=circuit.space), circuit)
    observation = np.concatenate((seen.reshape(50, -1), state.flat()), axis=1).astype(np.float32)
    with torch.no_grad():
        actions, means = actor.act(
            torch.from_numpy(observation), torch.zeros(50, actor.core.n_drives + actor.core.n_motors)
        )
    policy, theta = actor.exported()
    after, expected = policy.bind(np.tile(theta, (50, 1))).act(state, seen)
    assert torch.equal(actions, means)
    expected[:, 1::2, 0] *= -1  # FR, HR: their motor neurons say outwards, which the environment turns into an angle
    motors = actions[:, DRIVES:].numpy().reshape(50, 4, -1)
    assert np.abs(motors - expected[..., moved]).max() < 1e-6
    inputs = after.signals[:, -13:-5].reshape(50, 2, 4).transpose(0, 2, 1).reshape(50, 8)  # as the circuit was driven
    assert np.abs(actions[:, :DRIVES].numpy() - inputs).max() < 2e-6
    assert (actions[:, :DRIVES].abs().max() <= AFFERENT_LIMIT + 1e-6) == (circuit is CIRCUIT)


def test_fast_pools_take_part_in_torch_as_in_the_controller():
    seen = np.zeros((50, SEEN))
    observation = torch.from_numpy(np.concatenate((seen, random_state(50).flat()), axis=1).astype(np.float32))
    fast = np.array(["fast_" in name for name in CIRCUIT.space.names])
    with torch.no_grad():
        whole, slow = (
            actor_with(np.where(kept, random_theta(), 0.0)).act(observation, torch.zeros(50, ACTIONS))[0]
            for kept in (np.ones(112, bool), ~fast)
        )
    assert fast.sum() == 2 * 3 * 2  # pools, joints, girdles
    assert (whole[:, DRIVES:] - slow[:, DRIVES:]).abs().max() > 0.05
    assert torch.equal(whole[:, :DRIVES], slow[:, :DRIVES])


def test_the_environment_steps_the_rhythm_as_the_controller_does():
    interface = RhythmDrive(CIRCUIT, 3)
    controller = CIRCUIT.bind(np.tile(random_theta(), (3, 1)))
    actor = actor_with(random_theta())
    rng, state = np.random.default_rng(2), controller.reset([4, 5, 6])
    interface.start(np.arange(3), [4, 5, 6])
    for _ in range(40):
        seen = rng.uniform(-1, 1, (3, 4, 14))
        observation = torch.from_numpy(interface.observation(seen, np.zeros((len(seen), 0))))
        with torch.no_grad():
            actions, _ = actor.act(observation, torch.zeros(3, ACTIONS))
        state, expected = controller.act(state, seen)
        assert np.abs(interface.joints(actions.numpy().astype(np.float64)) - expected).max() < 1e-5
    interface.start(np.array([1]), [9])
    alone = CIRCUIT.bind(random_theta()[None]).reset([9])
    rhythm = interface._state.flat()
    assert np.array_equal(rhythm[1], alone.flat()[0])
    assert rhythm[0] == pytest.approx(state.flat()[0], abs=1e-5)


def test_a_flat_state_is_the_state():
    state = random_state(5)
    again = CoreDrive(CIRCUIT).state_from(state.flat())
    for mine, same in zip(_arrays(state), _arrays(again), strict=True):
        assert np.array_equal(mine, same)
        assert mine.dtype == same.dtype


def _arrays(state):
    return [state.signals, *(part for unit in state.units for part in unit)]


def test_the_means_of_an_action_are_those_it_was_drawn_around():
    # the pattern's means depend on the drives that were drawn, not on their means
    actor = actor_with(random_theta())
    observation = np.concatenate((np.random.default_rng(3).uniform(-1, 1, (50, SEEN)), random_state(50).flat()), 1)
    seen = torch.from_numpy(observation.astype(np.float32))
    with torch.no_grad():
        actions, means = actor.act(seen, torch.randn(50, ACTIONS, generator=torch.Generator().manual_seed(0)))
        assert torch.equal(actor.means(seen, actions), means)
        assert not torch.equal(actor.means(seen, torch.zeros(50, ACTIONS)), means)


def test_the_gradient_of_a_probability_reaches_afferents_and_pattern():
    actor = actor_with(random_theta())
    observation = np.concatenate((np.random.default_rng(3).uniform(-0.1, 0.1, (50, SEEN)), random_state(50).flat()), 1)
    seen = torch.from_numpy(observation.astype(np.float32))
    with torch.no_grad():
        actions, _ = actor.act(seen, 0.1 * torch.randn(50, ACTIONS, generator=torch.Generator().manual_seed(0)))

    def log_probability():
        return -0.5 * ((actions - actor.means(seen, actions)) ** 2).sum()

    log_probability().backward()
    assert (actor.theta.grad != 0).sum() == actor.theta.numel()
    # in AF.fore, AF.hind; of the posture, of PF.fore and its fast pools, of the hip, and a bias
    for i in (3, 45, 81, 84, 86, 89, 94, 111):
        with torch.no_grad():
            actor.theta[i] += 2e-3
            above = log_probability()
            actor.theta[i] -= 4e-3
            below = log_probability()
            actor.theta[i] += 2e-3
        assert actor.theta.grad[i].item() == pytest.approx(((above - below) / 4e-3).item(), rel=0.02, abs=2e-3)


def test_weights_keep_their_signs_after_every_step_of_the_optimiser():
    walker = ppo.Walker(*_spaces(), None, False, NCAPActor(CIRCUIT), ppo.SETTINGS["ncap"])
    initial = torch.from_numpy(CIRCUIT.space.initial).float()
    free = torch.tensor([name.startswith("PF: ") for name in CIRCUIT.space.names])
    signs = torch.sign(initial).masked_fill(free, 0.0)  # every weight that does not start at 0, but of the posture
    walker.actor.theta.grad = 1.0 * signs  # drives every constrained weight towards 0 and beyond
    walker.optimizer.param_groups[0]["lr"] = 0.7
    for _ in range(3):
        walker.optimizer.step()
    assert (walker.actor.theta * signs >= 0).all()
    assert (walker.actor.theta[signs != 0] == 0).all()


def _spaces():
    from gymnasium import spaces

    interface = RhythmDrive(CIRCUIT, 1)
    limits = interface.action_limits
    return spaces.Box(-np.inf, np.inf, (interface.observation_size,)), spaces.Box(-limits, limits)


def test_the_probability_of_an_action_is_the_normal_density():
    walker = ppo.Walker(*_spaces(), None, False, NCAPActor(CIRCUIT), ppo.SETTINGS["ncap"])
    observation = torch.from_numpy(
        np.concatenate((np.zeros((1, SEEN)), random_state(1).flat()), axis=1).astype(np.float32)
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


def test_a_trained_rhythm_in_torch_acts_as_the_exported_one_where_a_control_step_is_one_circuit_step():
    # the released circuit: numbers of the core that act as an extra drive then act exactly as they do in the circuit
    policy = NCAPPolicy(command=0.2, circuit=animal("released").trained_by(["AF", "BC", "RG", "PF"]))
    rng, space = np.random.default_rng(4), policy.space
    actor = NCAPActor(policy)
    with torch.no_grad():
        actor.theta.copy_(torch.from_numpy(space.constrain(space.initial + 0.2 * rng.standard_normal(space.size))))
    state = policy.core.reset(50, rng)
    for _ in range(20):
        state = policy.core.step(state, rng.uniform(0, 1, (50, 12)))
    seen = rng.uniform(-1, 1, (50, 4, 10))
    observation = np.concatenate((seen.reshape(50, 40), state.flat()), axis=1).astype(np.float32)
    with torch.no_grad():
        actions, _ = actor.act(torch.from_numpy(observation), torch.zeros(50, DRIVES + 28 + 8))
    exported, theta = actor.exported()
    _, expected = exported.bind(np.tile(theta, (50, 1))).act(state, seen)
    _, untrained = policy.bind(np.tile(space.initial, (50, 1))).act(state, seen)
    assert space.size == 129
    assert np.abs(expected - untrained).max() > 0.1
    assert np.abs(actions[:, DRIVES + 28 :].numpy().reshape(50, 4, 2) - expected[..., 1:]).max() < 1e-5


def test_extra_drives_of_a_trained_rhythm_are_what_its_changes_make_of_the_signals_behind_the_posture():
    policy = NCAPPolicy(command=0.7, circuit=animal().trained_by(["RG"]))
    theta, state = random_theta(space=policy.space), random_state(50)
    seen = np.random.default_rng(5).uniform(-1, 1, (50, SEEN))
    observation = torch.from_numpy(np.concatenate((seen, state.flat()), axis=1).astype(np.float32))
    with torch.no_grad():
        drives = actor_with(theta, policy).drives(observation)[:, DRIVES:].numpy()
    after, before = policy.core.weights_from(policy.numbers(np.stack((theta, policy.space.initial))))
    expected = state.signals @ (after - before).T
    assert np.abs(drives - expected).max() < 1e-5
    assert np.abs(expected).max() > 0.1


def test_a_table_that_has_no_motor_neurons_to_train_is_refused():
    with pytest.raises(UserError, match="neuron fast_flexor: ppo needs motor neurons"):
        NCAPActor(NCAPPolicy(circuit=CIRCUIT.circuit.without(["hip", "thigh", "calf"])))
    with pytest.raises(UserError, match="ppo needs afferents that are summed once, and motor neurons"):
        NCAPActor(NCAPPolicy(circuit=animal("paper").without(["thigh", "calf"])))


def test_a_circuit_whose_afferents_alone_are_trained_has_80_weights_and_their_gradient():
    actor = NCAPActor(NCAPPolicy(command=0.2, circuit=CIRCUIT.circuit.trained_by(["AF"])))
    seen = 0.01 * torch.rand(5, SEEN, generator=torch.Generator().manual_seed(0))  # no sum is far beyond its limit
    actor.drives(seen).sum().backward()
    # all is positive: the positive halves of the afferents (10 of 20) reach both sums of both girdles
    assert actor.theta.shape == (80,)
    assert (actor.theta.grad != 0).sum() == 10 * 2 * 2
