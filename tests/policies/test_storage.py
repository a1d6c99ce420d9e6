import pickle

import numpy as np
import pytest
import safetensors.numpy

from ncap.errors import UserError
from ncap.policies import storage
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.storage import load_policy, read_tensors, save_policy, write_tensors


@pytest.mark.parametrize("policy", [NCAPPolicy(command=0.35, copies=8), MLPPolicy(hidden=(4, 3), std=(2.0,) * 40)])
def test_a_policy_comes_back_as_it_went(tmp_path, policy):
    theta = np.random.default_rng(0).normal(size=policy.space.size)
    save_policy(tmp_path / "p.safetensors", policy, theta, {"note": "hello"})
    loaded, weights, about = load_policy(tmp_path / "p.safetensors")
    assert loaded == policy
    assert np.array_equal(weights, theta)
    assert about == {"note": "hello"}


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.safetensors"
    policy = NCAPPolicy(command=0.2)
    save_policy(path, policy, policy.space.initial, {})
    return path


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.99])
def test_a_truncated_file_is_refused(good, share):
    data = good.read_bytes()
    good.write_bytes(data[: int(share * len(data))])
    with pytest.raises(UserError, match=r"good\.safetensors is not a complete safetensors file"):
        load_policy(good)


def test_an_altered_weight_or_description_is_refused(good):
    data = bytearray(good.read_bytes())
    data[-3] ^= 1
    good.write_bytes(data)
    with pytest.raises(UserError, match="altered or damaged"):
        load_policy(good)
    data[-3] ^= 1
    good.write_bytes(bytes(data).replace(b'\\"command\\": 0.2', b'\\"command\\": 0.9'))
    with pytest.raises(UserError, match="altered or damaged"):
        load_policy(good)


def test_a_pickle_is_refused_without_running_it(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was run",))

    (tmp_path / "trap").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(UserError, match="not a complete safetensors file"):
        load_policy(tmp_path / "trap")


def test_a_huge_header_and_a_huge_file_are_refused(tmp_path, monkeypatch):
    (tmp_path / "header").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    with pytest.raises(UserError, match="not a complete safetensors file"):
        load_policy(tmp_path / "header")
    monkeypatch.setattr(storage, "MAX_BYTES", 100)
    (tmp_path / "large").write_bytes(bytes(1000))
    with pytest.raises(UserError, match="more than any file of ours"):
        load_policy(tmp_path / "large")


def test_foreign_safetensors_wrong_shapes_and_nan_are_refused(tmp_path):
    safetensors.numpy.save_file({"theta": np.zeros(92)}, tmp_path / "foreign")
    with pytest.raises(UserError, match="not one of ncap's"):
        load_policy(tmp_path / "foreign")
    save_policy(tmp_path / "short", NCAPPolicy(command=0.2), np.zeros(91), {})
    with pytest.raises(UserError, match="92 weights are needed"):
        load_policy(tmp_path / "short")
    save_policy(tmp_path / "nan", NCAPPolicy(command=0.2), np.full(92, np.nan), {})
    with pytest.raises(UserError, match="not finite"):
        load_policy(tmp_path / "nan")
    write_tensors(tmp_path / "checkpoint", {"a": np.zeros(2)}, {"epoch": 1})
    with pytest.raises(UserError, match="holds no policy"):
        load_policy(tmp_path / "checkpoint")
    with pytest.raises(UserError, match="does not exist"):
        load_policy(tmp_path / "nothing")


def test_policies_of_another_version_are_refused_by_the_name_of_their_file(tmp_path):
    wrongs = {"older": ({"kind": "ncap", "command": 0.2, "amplitude": 1.0}, "no setting amplitude"),
              "newer": ({"kind": "lamprey"}, "unknown kind of policy 'lamprey'; valid: ncap, mlp")}  # fmt: skip
    for name, (description, wrong) in wrongs.items():
        write_tensors(tmp_path / name, {"theta": np.zeros(92)}, {"policy": description, "about": {}})
        with pytest.raises(UserError, match=f"{name}: .*{wrong}"):
            load_policy(tmp_path / name)


def test_a_full_disk_leaves_the_old_file_and_no_litter(good, monkeypatch):
    before = good.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match="No space left on device; what was there before is unchanged"):
        save_policy(good, NCAPPolicy(command=0.9), np.ones(92), {})
    assert good.read_bytes() == before
    assert [path.name for path in good.parent.iterdir()] == [good.name]


def test_arrays_of_any_shape_come_back(tmp_path):
    tensors = {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros((0,)), "c": np.array(3.0)}
    write_tensors(tmp_path / "t", tensors, {"x": [1, 2]})
    found, description = read_tensors(tmp_path / "t")
    assert description == {"x": [1, 2]}
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)
