from dataclasses import replace

import mujoco
import numpy as np
import pytest

from ncap.errors import UserError
from ncap.policies.controller import RandomPolicy, ZeroPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.rewards import SPEED, YAW, RewardTerm
from ncap.rollouts import Arena, rollout
from ncap.sim.go import GO2, GO2_NUMB
from ncap.sim.legs import foot_forces, legs_of
from ncap.sim.simulation import Simulation
from ncap.sim.terrain import Bumpy
from ncap.sim.world import Variation
from ncap.tasks import PAPER_TASKS, TASKS, Task, drawn_variation, find_task, with_gains, with_robot

STANDS, FLAILS = (policy.bind(np.zeros((1, 0))) for policy in (ZeroPolicy(), RandomPolicy()))
SHORT = {name: replace(task, episode_seconds=1.5) for name, task in TASKS.items()}
EVERYTHING = ("observation", "action", "reward", "speed", "yaw", "fall", "foot_force", "position", "torque")


def same(one, other):
    return (
        np.array_equal(one.returns, other.returns)
        and np.array_equal(one.steps, other.steps)
        and all(np.array_equal(one.signals[name], other.signals[name], equal_nan=True) for name in one.signals)
    )


class Fixed:
    """Everybody does the same all the time."""

    def __init__(self, action):
        self.action = np.asarray(action, float)

    def reset(self, seeds, command=None):
        return len(seeds)

    def act(self, state, observation, command=None):
        return state, np.broadcast_to(self.action, (len(observation), 4, 3)).copy()

    def signals(self, state):
        return {}


@pytest.mark.parametrize("name", [*PAPER_TASKS, "flat-speeds"])
def test_standing_still_scores_one_half_or_what_tracking_leaves_of_it(name):
    episodes = rollout(TASKS[name], STANDS, [0, 1])
    # the paper's reward is 0.5 at rest, whatever the speed; tracking v m/s leaves 1 - v / 0.6 of it, here 0.2 and 0.45
    assert episodes.returns == pytest.approx([0.5, 0.5] if name in PAPER_TASKS else [2 / 3, 1 / 4], abs=0.01)
    assert not episodes.fell.any()
    assert np.all(episodes.steps == 500)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_finite_deterministic_and_has_no_constant_observation(name):
    signals = (*(term.name for term in SHORT[name].rewards), *EVERYTHING[5:], *EVERYTHING[:3])
    flails = RandomPolicy(joints=SHORT[name].joints).bind(np.zeros((2, 0)))
    first = rollout(SHORT[name], flails, [1, 3], record=signals)
    assert same(first, rollout(SHORT[name], flails, [1, 3], record=signals))
    lived = np.arange(SHORT[name].steps) < first.steps[:, None]
    for signal, values in first.signals.items():
        assert np.isfinite(values[lived]).all(), signal
    observation = first.signals["observation"][lived]
    assert observation.min() >= -1
    assert observation.max() <= 1
    assert np.all(observation.std(axis=0) > 1e-3)


@pytest.mark.parametrize("name", TASKS)
def test_starts_are_randomised_by_the_seed_and_only_by_it(name):
    arena = Arena(SHORT[name], 3)
    arena.start(np.arange(3), [7, 8, 7])
    observation = arena.observation()
    assert np.array_equal(observation[0], observation[2])
    assert np.abs(observation[0] - observation[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["flat-walk", "bumpy-run"])
def test_results_are_identical_for_one_and_three_threads(name):
    one = rollout(SHORT[name], FLAILS, range(7), threads=1, record=EVERYTHING)
    assert same(one, rollout(SHORT[name], FLAILS, range(7), threads=3, record=EVERYTHING))


@pytest.mark.parametrize("name", ["flat-walk", "bumpy-run"])
def test_an_individual_is_the_same_alone_and_in_a_crowd(name):
    crowd = rollout(SHORT[name], FLAILS, range(6), record=EVERYTHING)
    alone = rollout(SHORT[name], FLAILS, [4], record=EVERYTHING)
    assert alone.returns[0] == crowd.returns[4]
    for signal in EVERYTHING:
        assert np.array_equal(alone.signals[signal][0], crowd.signals[signal][4], equal_nan=True)


def test_no_memory_is_shared_with_the_caller():
    arena = Arena(SHORT["flat-walk"], 2)
    arena.start(np.arange(2), [0, 1])
    before = arena.observation()
    kept = before.copy()
    arena.step(np.arange(2), np.full((2, 4, 3), 0.3))
    assert np.array_equal(before, kept)
    before[:] = 7.0
    assert arena.observation().max() <= 1.0


def test_a_fall_costs_its_penalty_and_the_rest_of_the_episode():
    # legs of one side stretched, of the other folded: the robot rolls over
    tip = np.array([[1, -1, -1], [1, 1, 1], [1, -1, -1], [1, 1, 1]])
    task = replace(TASKS["flat-walk"], fall_deg=10.0)
    episodes = rollout(task, Fixed(tip), [0], record=["reward", "up"])
    assert episodes.fell[0]
    steps = episodes.steps[0]
    assert steps < 100
    assert episodes.terms["fall"][0] == pytest.approx(-10 / 500)
    rewards = episodes.signals["reward"][0]
    assert np.isnan(rewards[steps:]).all()
    assert episodes.returns[0] == pytest.approx(rewards[:steps].sum() / 500)
    tilt = np.rad2deg(np.abs(np.arctan2(episodes.signals["up"][0, :steps, :2], episodes.signals["up"][0, :steps, 2:])))
    assert tilt[-1].max() > 10
    assert tilt[:-1].max() <= 10


def test_the_trunk_on_the_ground_is_a_fall_although_it_is_level():
    # without strength in its joints the robot sinks down on its belly
    task = replace(TASKS["flat-walk"], variation=Variation(kp=1.0, kd=1.0))
    episodes = rollout(task, STANDS, [0], record=["trunk_touches", "up"])
    last = episodes.steps[0] - 1
    assert episodes.fell[0]
    assert episodes.signals["trunk_touches"][0, last] == 1
    assert not episodes.signals["trunk_touches"][0, :last].any()
    assert episodes.signals["up"][0, last, 2] > np.cos(np.deg2rad(45))


def test_the_fallen_are_no_longer_stepped(monkeypatch):
    stepped = []
    original = Simulation.step
    monkeypatch.setattr(
        Simulation, "step", lambda self, alive, t: stepped.append(len(alive)) or original(self, alive, t)
    )
    episodes = rollout(replace(TASKS["flat-walk"], episode_seconds=4.0), FLAILS, range(6))
    assert sum(stepped) == episodes.steps.sum()
    assert episodes.fell.any()


def test_a_simulation_that_diverges_is_a_fall_of_that_one_only(monkeypatch):
    original = Simulation.step
    calls = []

    def sabotage(self, alive, targets):
        calls.append(len(alive))
        if len(calls) == 10:
            self._qvel[1] = np.nan
        return original(self, alive, targets)

    healthy = rollout(SHORT["flat-walk"], STANDS, [0, 1, 2])
    monkeypatch.setattr(Simulation, "step", sabotage)
    episodes = rollout(SHORT["flat-walk"], STANDS, [0, 1, 2], record=["reward"])
    assert episodes.diverged.tolist() == [False, True, False]
    assert episodes.fell.tolist() == [False, True, False]
    assert episodes.steps.tolist() == [50, 10, 50]
    assert np.isfinite(episodes.returns).all()
    assert np.array_equal(episodes.returns[[0, 2]], healthy.returns[[0, 2]])


def test_equal_seeds_are_common_random_numbers():
    episodes = rollout(SHORT["bumpy-walk"], Fixed(np.zeros((4, 3))), [3, 5, 3])
    assert episodes.returns[0] == episodes.returns[2] != episodes.returns[1]


def test_unknown_signals_and_tasks_are_listed():
    with pytest.raises(UserError, match="unknown signal 'mood'; valid: joint_position"):
        rollout(SHORT["flat-walk"], STANDS, [0], record=["mood"])
    with pytest.raises(
        UserError, match="unknown task 'fly'; valid: flat-walk, flat-run, bumpy-walk, bumpy-run, flat-sp"
    ):
        find_task("fly")


def test_wrong_seeds_threads_and_shapes_are_refused():
    with pytest.raises(UserError, match="a seed is a number from 0 on, not -1"):
        rollout(SHORT["flat-walk"], STANDS, [0, -1])
    for threads in (0, -2):
        with pytest.raises(UserError, match=f"at least one thread is needed, not {threads}"):
            rollout(SHORT["flat-walk"], STANDS, [0], threads=threads)
    with pytest.raises(UserError, match="at least one episode is needed: seeds is empty"):
        rollout(SHORT["flat-walk"], STANDS, [])
    wrong = ZeroPolicy(joints=(4, 2)).bind(np.zeros((1, 0)))
    with pytest.raises(UserError, match=r"actions have the shape \(2, 4, 2\), but \(2, 4, 3\) is needed"):
        rollout(SHORT["flat-walk"], wrong, [0, 1])


def test_rewards_are_the_named_terms_of_the_task():
    low = RewardTerm("low", lambda now, goal, task: -now.position[:, 2])
    usual = rollout(SHORT["flat-walk"], FLAILS, [1, 3], record=("position",))
    mine = rollout(replace(SHORT["flat-walk"], rewards=(SPEED, YAW, low)), FLAILS, [1, 3])
    assert list(usual.terms) == ["speed", "yaw", "fall"]
    assert list(mine.terms) == ["speed", "yaw", "low", "fall"]
    assert np.array_equal(mine.terms["speed"], usual.terms["speed"])
    heights = np.nansum(usual.signals["position"][:, :, 2], axis=1) / SHORT["flat-walk"].steps
    assert mine.terms["low"] == pytest.approx(-heights)
    assert mine.returns == pytest.approx(usual.returns - heights)


def test_a_command_is_handed_to_the_controller_all_the_time():
    policy = NCAPPolicy(command=0.1)
    theta = np.tile(policy.space.initial, (2, 1))
    said = rollout(SHORT["flat-walk"], policy.bind(theta), [0, 1], command=np.array([0.1, 0.8]), record=["action"])
    for i, command in enumerate((0.1, 0.8)):
        own = replace(policy, command=command).bind(theta)
        expected = rollout(SHORT["flat-walk"], own, [0, 1], record=["action"])
        assert np.array_equal(said.signals["action"][i], expected.signals["action"][i])


def test_impossible_tasks_are_refused():
    with pytest.raises(UserError, match="target_speed"):
        replace(TASKS["flat-walk"], target_speed=0.0)
    with pytest.raises(UserError, match="friction"):
        replace(TASKS["flat-walk"], friction=(0.0, 1.0))
    with pytest.raises(UserError, match=r"brainstem command 2 is outside \[0, 1\]"):
        replace(TASKS["flat-walk"], command=2.0)
    with pytest.raises(UserError, match="episode_seconds must be a positive number of seconds"):
        replace(TASKS["flat-walk"], episode_seconds=0.0)


def test_a_task_says_the_shapes_of_what_is_felt_and_done():
    arena = Arena(SHORT["flat-walk"], 2)
    arena.start(np.arange(2), [0, 1])
    assert SHORT["flat-walk"].senses == (4, 10)
    assert arena.observation().shape == (2, 4, 10 + 4)  # and the posture of the trunk
    assert SHORT["flat-walk"].joints == (4, 3)


def placed(roll, pitch, heading, spin=(0.0, 0.0, 0.0)):
    """An arena with one standing robot in this orientation, rad, that turns about its own axes at `spin`, rad/s."""
    arena = Arena(TASKS["flat-walk"], 1)
    arena.start(np.zeros(1, int), [0])
    quaternion = np.zeros(4)
    mujoco.mju_euler2Quat(quaternion, np.array([heading, pitch, roll]), "zyx")
    arena.simulation._qpos[0, 3:7], arena.simulation._qvel[0, 0:6] = quaternion, (0, 0, 0, *spin)
    arena.measured = arena.simulation.measure()
    return arena


def sinking(arena, axis):
    """(leg,) heights of the hips below their middle, m, and how fast they sink, m/s, as the simulator has them.

    axis: 1 compares the two hips of a girdle, 0 the two of a side.
    """
    model, data = arena.simulation.model(0), mujoco.MjData(arena.simulation.model(0))
    data.qpos[:], data.qvel[:] = arena.state(0), arena.simulation._qvel[0]
    mujoco.mj_forward(model, data)
    found = []
    for leg in ("FL", "FR", "HL", "HR"):
        velocity, body = np.zeros(6), model.joint(f"{leg}_hip").bodyid[0]
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
        found.append((-data.xpos[body, 2], -velocity[5]))
    values = np.array(found).reshape(2, 2, 2)  # girdle, side
    return np.moveaxis(values - values.mean(axis=axis, keepdims=True), -1, 0).reshape(2, 4)


@pytest.mark.parametrize("heading", [0.0, 2.5])
@pytest.mark.parametrize("angle", [0.1, -0.3])
def test_legs_whose_side_or_girdle_is_low_or_sinks_feel_it_in_the_simulation(angle, heading):
    for sense, axis, arena in (
        (10, 1, placed(angle, 0.0, heading, (-4 * angle, 0.0, 0.7))),
        (12, 0, placed(0.0, angle, heading, (0.0, -4 * angle, 0.7))),
    ):
        seen, (low, falls) = arena.observation()[0], sinking(arena, axis)
        assert seen[:, sense] == pytest.approx(abs(angle) / 0.5 * np.sign(low))  # 0.5 rad is felt as 1
        assert seen[:, sense + 1] == pytest.approx(4 * abs(angle) / 2.0 * np.sign(falls))  # and 2 rad/s
        others = [column for column in range(10, 14) if column not in (sense, sense + 1)]
        assert seen[:, others] == pytest.approx(np.zeros((4, 2)), abs=1e-12)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_hips_turned_to_one_side_and_knees_of_one_girdle_stretched_turn_the_trunk_as_the_reflexes_need(side):
    # the untrained reflexes answer a right side that sinks by positive angles of all hips, a nose that sinks by fore
    # knees that are stretched and hind knees that are bent (tests/policies/test_policies.py)
    hips, knees = np.zeros((2, 1, 4, 3))
    hips[0, :, 0], knees[0, :, 2] = side, 0.5 * side * np.array([1, 1, -1, -1])
    for action, sense, leg in ((hips, 10, 1), (knees, 12, 0)):  # FR, whose side, and FL, whose girdle has sunk
        arena = placed(0.0, 0.0, 0.0)
        before = arena.observation()[0, leg, sense]
        for _ in range(6):
            arena.step(np.zeros(1, int), action)
        assert side * (arena.observation()[0, leg, sense] - before) < -0.1


def test_everything_about_a_task_can_be_adjusted():
    task = Task(name="mine", target_speed=0.3, terrain=Bumpy(bumpiness=0.2), episode_seconds=0.6, physics="fast")
    episodes = rollout(task, STANDS, [0])
    assert episodes.steps[0] == 20


def test_sensors_in_the_last_physics_step_only_change_nothing_but_the_cost(monkeypatch):
    fast = rollout(SHORT["flat-walk"], FLAILS, [1, 3], record=EVERYTHING)
    monkeypatch.setattr(Simulation, "_show_sensors", lambda self, shown: None)
    assert same(fast, rollout(SHORT["flat-walk"], FLAILS, [1, 3], record=EVERYTHING))


def test_a_robot_that_leaves_the_end_of_the_world_has_fallen():
    arena = Arena(TASKS["bumpy-walk"], 1)
    arena.start(np.zeros(1, int), [0])
    arena.simulation._qpos[0, 2] = -1.5
    assert arena.step(np.zeros(1, int), np.zeros((1, 4, 3))).fallen[0]


def test_joint_targets_that_come_late_are_those_of_earlier_steps():
    task, everybody = replace(SHORT["flat-walk"], start_noise=0.0), np.arange(2)
    actions = np.random.default_rng(5).uniform(-1, 1, (10, 2, 4, 3))
    on_time, late = Arena(task, 2), Arena(replace(task, latency=2), 2)
    for arena in (on_time, late):
        arena.start(everybody, [0, 1])
    for t in range(10):
        late.step(everybody, actions[t])
        on_time.step(everybody, actions[t - 2] if t >= 2 else np.zeros((2, 4, 3)))  # first the standing pose
        np.testing.assert_array_equal(late.measured.joint_position, on_time.measured.joint_position)
    late.start(everybody[:1], [7])
    late.step(everybody, actions[0])
    np.testing.assert_array_equal(late.simulation._ctrl[0], task.robot.mid.ravel())  # nothing is left of before


def test_sensor_noise_is_as_large_as_asked_and_belongs_to_the_episode():
    task, everybody = replace(SHORT["flat-walk"], sensor_noise=0.05), np.arange(2)
    noisy, clean = Arena(task, 2), Arena(replace(task, sensor_noise=0.0), 2)
    differences = []
    for _ in range(2):
        for arena in (noisy, clean):
            arena.start(everybody, [3, 3])
        differences.append([])
        for _ in range(20):
            differences[-1].append(noisy.observation() - clean.observation())
            for arena in (noisy, clean):
                arena.step(everybody, np.zeros((2, 4, 3)))
    first, again = np.array(differences)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first[:, 0], first[:, 1])  # equal seeds, equal noise
    inside = np.abs(clean.observation()[0]) < 0.5  # the others are clipped
    assert first[:, 0][:, inside].std() == pytest.approx(0.05, rel=0.1)
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize(("name", "value"), [("latency", -1), ("latency", 0.5), ("sensor_noise", -0.1)])
def test_impossible_disturbances_are_refused(name, value):
    with pytest.raises(UserError, match=name):
        replace(TASKS["flat-walk"], **{name: value})


def test_gains_are_drawn_in_their_ranges_for_every_episode_and_change_nothing_else():
    usual = TASKS["flat-walk"]
    varied = replace(usual, kp_factor=(0.7, 1.3), kd_factor=(0.5, 1.5))
    drawn = [drawn_variation(varied, seed) for seed in range(200)]
    assert [replace(one, kp=None, kd=None) for one in drawn] == [drawn_variation(usual, seed) for seed in range(200)]
    kp, kd = np.array([(one.kp / usual.robot.kp, one.kd / usual.robot.kd) for one in drawn]).T
    # 200 uniform draws leave less than a twentieth of the range free at either end, but for one case in 10,000
    assert 0.7 <= kp.min() < 0.73 < 1.27 < kp.max() <= 1.3
    assert 0.5 <= kd.min() < 0.55 < 1.45 < kd.max() <= 1.5
    assert abs(np.corrcoef(kp, kd)[0, 1]) < 0.25
    twice = drawn_variation(with_gains(varied, kp=2.0, kd=1.0), 7)
    assert (twice.kp, twice.kd) == (2 * drawn[7].kp, drawn[7].kd)
    with pytest.raises(UserError, match="kp_factor"):
        replace(usual, kp_factor=(1.2, 0.8))
    with pytest.raises(UserError, match="factor on kd is above 0"):
        with_gains(usual, kp=1.0, kd=0.0)


def test_feet_that_feel_nothing_are_estimated_from_torques_in_what_a_policy_sees_and_nowhere_else():
    everybody = np.arange(2)
    arenas = [Arena(with_robot(SHORT["flat-walk"], robot), 2) for robot in (GO2, GO2_NUMB)]
    for arena in arenas:
        arena.start(everybody, [0, 1])
        for _ in range(10):
            arena.step(everybody, np.full((2, 4, 3), 0.3))
    felt, numb = arenas
    assert (felt.measured.foot_force == numb.measured.foot_force).all()
    seen = numb.observation()
    force = foot_forces(numb.measured.joint_position, numb.measured.torque, legs_of(GO2))
    assert seen[..., 9] == pytest.approx(np.clip(2 * force / GO2.foot_force_max - 1, -1, 1))
    other = felt.observation()
    assert (np.delete(seen, 9, axis=-1) == np.delete(other, 9, axis=-1)).all()
    assert (seen[..., 9] != other[..., 9]).any()
