"""Policies that stable-baselines3 has saved (model.zip) as MLPs of ours. Nothing in the file is run.

Such a file holds pickled Python objects beside the weights. Only the weights are read, by torch's reader that makes
nothing but arrays, and plain entries of its JSON; so it needs torch, but neither stable-baselines3 nor trust. Every
action is the one that `model.predict(observation, deterministic=True)` gives.
"""

import io
import json
import pickle
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.extras import missing_extra
from ncap.files import MAX_BYTES, check_regular
from ncap.plan import QUADRUPED, chain
from ncap.policies.controller import LEGS_AND_JOINTS, LEGS_AND_SENSES
from ncap.policies.mlp import MLPPolicy

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float64]

ENDING: Final = ".zip"
MOST_LAYERS: Final = 20
MOST_NUMBERS: Final = MAX_BYTES // 2
"""Numbers in all arrays of a file together: a file of ours could not hold more, even as float16."""
_KINDS: Final = (
    # hidden layers up to their number, the last one, activation unless the file says another, what bounds actions
    ("mlp_extractor.policy_net.", "action_net", "tanh", "clip"),  # PPO, A2C
    ("actor.latent_pi.", "actor.mu", "relu", "tanh"),  # SAC
    ("actor.mu.", None, "relu", "tanh"),  # TD3, DDPG
)
_ACTIVATIONS: Final = {"Tanh": "tanh", "ReLU": "relu"}


def read_model(path: Path) -> tuple[MLPPolicy, Array]:
    """(policy, weights (D,)) in a file that `model.save` wrote; one that is no plain MLP is refused."""
    check_regular(path)
    try:
        weights, words = _content(path)
    except UserError:
        raise
    except Exception as error:  # junk makes readers fail in many ways
        raise UserError(f"{path} is no model of stable-baselines3 ({str(error) or type(error).__name__})") from None
    try:
        return _policy(weights, words)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _content(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """(arrays by name, JSON entries) of a file."""
    try:
        import torch
    except ImportError:
        raise missing_extra("a policy of stable-baselines3", "rl") from None

    with zipfile.ZipFile(path) as file:
        _check_sizes([file.getinfo(name) for name in ("policy.pth", "data")])
        words, part = json.loads(file.read("data")), io.BytesIO(file.read("policy.pth"))
    if zipfile.is_zipfile(part):  # as all are that torch writes today
        with zipfile.ZipFile(part) as inner:
            _check_sizes(inner.infolist())
    part.seek(0)
    try:
        found = torch.load(part, map_location="cpu", weights_only=True)
    except Exception as error:
        more = isinstance(error, pickle.UnpicklingError)
        raise ValueError(f"its weights {'are more than arrays' if more else 'cannot be read'}") from None
    if not isinstance(words, dict) or not isinstance(found, dict):
        raise ValueError("its parts are no tables")
    return _arrays({str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)}), words


def _check_sizes(parts: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse parts that together are larger than any file of ours once they are unpacked."""
    if sum(part.file_size for part in parts) > MAX_BYTES:
        raise ValueError("unpacked, it is larger than any file of ours")


def _arrays(tensors: "dict[str, torch.Tensor]") -> dict[str, Array]:
    """The numbers of tensors. One number can stand for many in a file, so they are counted before they are copied."""
    if sum(tensor.numel() for tensor in tensors.values()) > MOST_NUMBERS:
        raise ValueError(f"its arrays have more than {MOST_NUMBERS} numbers")
    if any(tensor.is_complex() for tensor in tensors.values()):
        raise ValueError("its arrays have complex numbers")
    return {name: tensor.detach().double().numpy() for name, tensor in tensors.items()}


def _policy(weights: dict[str, Array], words: dict[str, Any]) -> tuple[MLPPolicy, Array]:
    """The actor of any algorithm that has a plain MLP."""
    if any("features_extractor." in name for name in weights):
        raise UserError("it has a features extractor with weights of its own, so it is no plain MLP")
    for hidden, last, activation, output in _KINDS:
        layer = re.compile(rf"{re.escape(hidden)}([0-9]{{1,4}})\.weight")
        found = {match[1] for name in weights if (match := layer.fullmatch(name))}
        if not found and (last is None or f"{last}.weight" not in weights):
            continue
        names = [f"{hidden}{number}" for number in sorted(found, key=int)]
        names += [last] if last else []
        return _mlp(weights, names, _activation(words, activation), _output(words, output))
    raise UserError("it has no actor that is a plain MLP, as the MlpPolicy of PPO, A2C, SAC, TD3 and DDPG is")


def _activation(words: dict[str, Any], usual: str) -> str:
    """The activation of the hidden layers: the file names its class in words that need no unpickling."""
    said = _settings(words).get("activation_fn")
    if said is None:
        return usual
    name = re.sub(r".*\.|\W", "", str(said))
    if name not in _ACTIVATIONS:
        raise UserError(f"its activation is {name[:40]!r}; valid: {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[name]


def _output(words: dict[str, Any], usual: str) -> str:
    """What bounds actions; state-dependent exploration changes that."""
    squashed = _settings(words).get("squash_output")
    if words.get("use_sde") and usual == "tanh":
        raise UserError("state-dependent exploration (use_sde) of SAC is not read")
    return "tanh" if squashed in (True, "True") else usual


def _settings(words: dict[str, Any]) -> dict[str, Any]:
    settings = words.get("policy_kwargs")
    return settings if isinstance(settings, dict) else {}


def _mlp(weights: dict[str, Array], names: list[str], activation: str, output: str) -> tuple[MLPPolicy, Array]:
    """An MLP of ours from linear layers by their names, the last one that of the actions."""
    if not 1 <= len(names) <= MOST_LAYERS:
        raise UserError(f"its actor has {len(names)} layers, outside [1, {MOST_LAYERS}]")
    layers = [(weights.get(f"{name}.weight", np.zeros(0)), weights.get(f"{name}.bias", np.zeros(0))) for name in names]
    size = layers[0][0].shape[1] if layers[0][0].ndim == 2 else 0
    inputs = size
    for matrix, bias in layers:
        if matrix.ndim != 2 or bias.shape != matrix.shape[:1] or matrix.shape[1] != size:
            raise UserError("its layers do not fit each other")
        size = len(matrix)
    senses, joints = _body(inputs, size)
    policy = MLPPolicy(
        hidden=tuple(len(matrix) for matrix, _ in layers[:-1]),
        activation=activation,
        output=output,
        senses=senses,
        wishes=inputs - senses,
        joints=joints,
    )
    return policy, np.concatenate([part.ravel() for layer in layers for part in layer])


def _body(inputs: int, outputs: int) -> tuple[int, tuple[int, int]]:
    """(observations, (sites, joints per site)) of the body that has so many of both; the rest are wishes."""
    legs = int(np.prod(LEGS_AND_SENSES)), LEGS_AND_JOINTS
    swimmer = outputs * len(chain(1).senses), (outputs, 1)
    if outputs == len(QUADRUPED.sites) * len(QUADRUPED.joints) and inputs in (legs[0], legs[0] + 3):
        return legs
    if inputs in (swimmer[0], swimmer[0] + 2):
        return swimmer
    raise UserError(
        f"it takes {inputs} numbers and gives {outputs}, as no environment of ours does without `circuit`: "
        f"a quadruped's has {legs[0]}, or 3 more where wishes change, and 12"
    )
