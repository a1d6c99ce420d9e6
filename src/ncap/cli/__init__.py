"""The command line. Every command is a thin function: it checks words, calls the library, and shows the result.

Imports of anything heavy stand inside the commands, so that `ncap --help` answers at once.
"""

import sys
from collections.abc import Sequence

from ncap import __version__
from ncap.cli import circuit, experiments, learning, machine, robot, view  # noqa: F401 - registers their commands
from ncap.cli.app import app
from ncap.errors import UserError
from ncap.threads import pin_process


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. A user's mistake is one line and exit code 2, never a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"ncap {__version__}")
        return
    pin_process()
    try:
        app.cli(args=words, prog="ncap", description="Neural circuit architectural priors for quadruped locomotion.")
    except UserError as error:
        print(f"ncap: error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader, for instance `head`, has seen enough
        sys.stderr.close()
