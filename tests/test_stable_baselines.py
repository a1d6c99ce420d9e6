"""A model.zip of stable-baselines3 plays as it does there, and nothing in it is run."""

import io
import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import ncap
from ncap import cli
from ncap.errors import UserError
from ncap.tasks import find_task
from ncap.trained import load

torch = pytest.importorskip("torch", reason="the extra `rl` is not installed")
sb3 = pytest.importorskip("stable_baselines3", reason="the extra `rl` is not installed")

from ncap.learn.gym_env import WalkingEnv

LOUD = {"net_arch": [24, 16]}


def saved(path, algorithm: str, env: WalkingEnv, **settings):
    """A model with weights so large that its actions reach their bounds, and its file."""
    kind = getattr(sb3, algorithm)
    buffer = {"buffer_size": 10} if algorithm in ("SAC", "TD3", "DDPG") else {}
    model = kind("MlpPolicy", env, device="cpu", seed=1, policy_kwargs=LOUD | settings.pop("policy", {}),
                 **buffer, **settings)  # fmt: skip
    with torch.no_grad():
        last = model.policy.action_net if algorithm in ("PPO", "A2C") else model.policy.actor.mu
        last = last if isinstance(last, torch.nn.Linear) else last[-2]  # with a tanh behind it
        norm = 8.0 if algorithm in ("PPO", "A2C") else 30.0  # what reaches the layer is smaller behind ReLU
        last.weight.mul_(norm / last.weight.norm(dim=1, keepdim=True))
    model.save(path)
    return model


@pytest.fixture(scope="module")
def env():
    return WalkingEnv("flat-walk")


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("PPO", {}),
        ("PPO", {"policy": {"activation_fn": torch.nn.ReLU}}),
        ("PPO", {"use_sde": True}),
        ("PPO", {"use_sde": True, "policy": {"squash_output": True}}),
        ("PPO", {"policy": {"net_arch": []}}),
        ("A2C", {}),
        ("SAC", {}),
        ("SAC", {"policy": {"activation_fn": torch.nn.Tanh}}),
        ("TD3", {}),
        ("DDPG", {}),
    ],
)
def test_its_actions_are_those_of_predict(algorithm, settings, env, tmp_path):
    model = saved(tmp_path / "model.zip", algorithm, env, **settings)
    ours = load(tmp_path / "model.zip").controller(64)
    seen = np.random.default_rng(0).uniform(-1, 1, (64, 40)).astype(np.float32)
    wanted = model.predict(seen, deterministic=True)[0]
    assert (np.abs(wanted) > 0.99).mean() > 0.02
    assert (np.abs(wanted) < 0.9).mean() > 0.02
    # torch computes in float32, with a step of 1.2e-7 at 1; up to 40 terms, weights and values of order 1 to 8
    np.testing.assert_allclose(ours.act(None, seen)[1].reshape(64, 12), wanted, atol=1e-5)


@pytest.fixture
def short(monkeypatch):
    """Episodes of 1.5 s."""
    for name in ("flat-walk", "flat-drive", "swim"):
        monkeypatch.setitem(ncap.TASKS, name, replace(ncap.TASKS[name], episode_seconds=1.5))


@pytest.mark.usefixtures("short")
def test_it_is_measured_like_any_policy_and_with_wishes_where_it_was_trained_with_them(env, tmp_path, capsys):
    saved(tmp_path / "walk.zip", "PPO", env)
    cli.main(["evaluate", str(tmp_path / "walk.zip"), "--episodes", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    weights = (40 + 1) * 24 + (24 + 1) * 16 + (16 + 1) * 12
    assert (found["task"], found["parameters"]) == ("flat-walk", weights)
    assert found["returns"] == load(tmp_path / "walk.zip").evaluate("flat-walk", [0]).returns
    saved(tmp_path / "drive.zip", "PPO", WalkingEnv("flat-drive"))
    drives = load(tmp_path / "drive.zip")
    assert drives.policy.wishes == 3
    assert drives.evaluate("flat-drive", [0]).commands is not None
    saved(tmp_path / "swim.zip", "PPO", WalkingEnv("swim"))
    swims = load(tmp_path / "swim.zip")
    assert (swims.policy.senses, swims.policy.joints) == (np.prod(find_task("swim").senses), find_task("swim").joints)
    assert swims.evaluate("swim", [0]).gait is None


@pytest.mark.usefixtures("short")
def test_an_episode_with_it_is_the_episode_that_stable_baselines3_plays(env, tmp_path):
    model = saved(tmp_path / "model.zip", "SAC", env)

    class Theirs:
        def reset(self, seeds, command=None):
            return None

        def act(self, state, observation, command=None):
            seen = observation[:, :, :10].reshape(len(observation), -1).astype(np.float32)
            return None, model.predict(seen, deterministic=True)[0].astype(float).reshape(-1, 4, 3)

        def signals(self, state):
            return {}

    signals = ("joint_position",)
    ours = ncap.rollout("flat-walk", load(tmp_path / "model.zip"), seeds=[0], record=signals)
    theirs = ncap.rollout("flat-walk", Theirs(), seeds=[0], record=signals)
    # before float32's rounding has grown: half a second
    np.testing.assert_allclose(
        ours.signals["joint_position"][0, :16], theirs.signals["joint_position"][0, :16], atol=1e-3
    )


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def exchanged(source, target, **parts) -> None:
    """A copy of a zip file in which some parts have other contents, or are missing (None)."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = parts.get(name.replace(".", "_"), old.read(name))
            if content is not None:
                new.writestr(name, content)


def test_code_in_a_file_is_not_run(env, tmp_path):
    saved(tmp_path / "model.zip", "PPO", env)
    bomb = io.BytesIO()
    torch.save({"action_net.weight": Bomb(tmp_path / "exploded")}, bomb)
    exchanged(tmp_path / "model.zip", tmp_path / "bomb.zip", policy_pth=bomb.getvalue())
    with pytest.raises(UserError, match="its weights are more than arrays"):
        load(tmp_path / "bomb.zip")
    model = saved(tmp_path / "words.zip", "PPO", env, policy={"activation_fn": torch.nn.ReLU})
    with zipfile.ZipFile(tmp_path / "words.zip") as file:
        words = json.loads(file.read("data"))
    words["policy_kwargs"][":serialized:"] = "this is no pickle"  # nobody reads it
    exchanged(tmp_path / "words.zip", tmp_path / "read.zip", data=json.dumps(words))
    assert load(tmp_path / "read.zip").policy.activation == "relu"
    assert model.policy is not None
    assert not (tmp_path / "exploded").exists()


def test_what_is_no_plain_mlp_of_our_environments_is_refused_in_a_sentence(env, tmp_path):
    saved(tmp_path / "model.zip", "PPO", env)
    (tmp_path / "text.zip").write_text("not a zip")
    empty = io.BytesIO()
    torch.save({}, empty)
    exchanged(tmp_path / "model.zip", tmp_path / "half.zip", policy_pth=None)
    exchanged(tmp_path / "model.zip", tmp_path / "empty.zip", policy_pth=empty.getvalue())
    exchanged(tmp_path / "model.zip", tmp_path / "junk.zip", policy_pth=b"junk")
    exchanged(tmp_path / "model.zip", tmp_path / "list.zip", data="[]")
    saved(tmp_path / "elu.zip", "PPO", env, policy={"activation_fn": torch.nn.ELU})
    saved(tmp_path / "sde.zip", "SAC", env, use_sde=True)
    saved(tmp_path / "rhythm.zip", "PPO", WalkingEnv("flat-walk", circuit="paper"))
    for name, said in {
        "text": "is no model of stable-baselines3",
        "half": "policy.pth",
        "empty": "no actor that is a plain MLP",
        "junk": "is no model of stable-baselines3|more than arrays",
        "list": "its parts are no tables",
        "elu": "its activation is 'ELU'; valid: Tanh, ReLU",
        "sde": "use_sde",
        "rhythm": "as no environment of ours does without `circuit`",
        "absent": "unknown policy",
    }.items():
        with pytest.raises(UserError, match=said):
            load(tmp_path / f"{name}.zip")


def weights_saved(**more) -> bytes:
    """What torch writes of a small actor with other arrays in place of some, or beside them."""
    usual = {
        "mlp_extractor.policy_net.0.weight": torch.ones(8, 40),
        "mlp_extractor.policy_net.0.bias": torch.zeros(8),
        "action_net.weight": torch.ones(12, 8),
        "action_net.bias": torch.zeros(12),
    }
    content = io.BytesIO()
    torch.save(usual | {name.replace("__", "."): value for name, value in more.items()}, content)
    return content.getvalue()


def written(path, policy: bytes, data: bytes = b"{}"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("data", data)
        file.writestr("policy.pth", policy)
    return path


def unpacked_to(size: int) -> bytes:
    """A zip file of a few kilobytes, or less, with a part of this many bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", bytes(size))
    return content.getvalue()


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (lambda: weights_saved(action_net__weight=torch.ones(12, 8).to_sparse()), "Sparse"),
        (lambda: weights_saved(action_net__weight=torch.ones(12, 8, dtype=torch.complex64)), "complex numbers"),
        (lambda: weights_saved(value=torch.empty(3, device="meta")), "meta"),
        # 4 bytes of the file that stand for 128 GB, and some that unpack to more than a file of ours may have
        (lambda: weights_saved(value=torch.zeros(1).expand(2**17, 2**17)), "more than 33554432 numbers"),
        (lambda: unpacked_to(65 * 2**20), "unpacked, it is larger than any file of ours"),
        (lambda: weights_saved(features_extractor__linear__weight=torch.eye(40)), "a features extractor with weights"),
    ],
)
def test_arrays_that_are_no_plain_mlps_are_refused_before_they_are_copied(policy, said, tmp_path):
    assert load(written(tmp_path / "good.zip", weights_saved())).policy.hidden == (8,)
    with pytest.raises(UserError, match=said):
        load(written(tmp_path / "bad.zip", policy()))


def test_a_file_whose_packing_is_damaged_is_refused_in_a_sentence(tmp_path):
    path = written(tmp_path / "damaged.zip", weights_saved(), data=b"{" + 1000 * b" " + b"}")
    content = bytearray(path.read_bytes())
    packed = content.index(b"data") + len("data")
    content[packed : packed + 10] = 10 * b"\xff"  # a kind of block that deflate does not have
    path.write_bytes(content)
    with pytest.raises(UserError, match="is no model of stable-baselines3"):
        load(path)
