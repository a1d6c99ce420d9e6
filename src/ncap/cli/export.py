"""The command that writes a policy for other programs."""

from pathlib import Path
from typing import Annotated

import tyro

from ncap.cli.app import OutFile, app
from ncap.cli.choice import Body, BodyWords, Brain, BrainWords, chosen
from ncap.errors import UserError

_OWN_BRAIN, _OWN_BODY = Brain(), Body()


@app.command
def export(
    policy: Annotated[str, tyro.conf.Positional],
    brain: BrainWords = _OWN_BRAIN,
    body: BodyWords = _OWN_BODY,
    onnx: bool = False,
    out: OutFile | None = None,
) -> None:
    """Write a policy for programs that know nothing of ncap: one control step as ONNX, and its contract as JSON.

    The contract has the order of the joints and senses, their ranges, the gains, the time step, and what a circuit
    remembers at the start. Both are written only if 200 steps agree with our own inference to 1e-6.

    Examples: `ncap export ncap-flat-walk --onnx`, `ncap export runs/mine --onnx --robot go2 --out go2/walk.onnx`.

    Args:
        policy: untrained, a shipped one such as ncap-flat-walk, a run directory (its best) or a file.
        brain: Changes of the circuit.
        body: Task and robot: whose joints and gains the contract has.
        onnx: As ONNX, the only format there is.
        out: File to write (.onnx), the contract goes beside it (.json); by default POLICY.onnx.

    """
    from ncap.export import export_onnx

    if not onnx:
        raise UserError("say in which format: --onnx is the one that there is")
    trained, task = chosen(policy, brain, body)
    path = out or Path(f"{Path(policy).name.removesuffix('.safetensors').removesuffix('.zip')}.onnx")
    agreed = export_onnx(trained, task, path)
    checked = agreed["checked"]
    print(f"model: {path}")
    print(f"contract: {path.with_suffix('.json')}")
    print(f"{checked['steps']} steps agree with our own inference to {checked['largest_difference']:.1e}")
