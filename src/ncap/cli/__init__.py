"""The command line. Every command is a thin function: it checks words, calls the library, and shows the result.

Imports of anything heavy stand inside the commands, so that `ncap --help` answers at once.
"""

import os
import sys
from collections.abc import Sequence

from ncap import __version__
from ncap.cli import circuit, experiments, export, learning, machine, robot, view  # noqa: F401 - registers their commands
from ncap.cli.app import app, check_words
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
        check_words(words)
        app.cli(args=words, prog="ncap", description="Neural circuit architectural priors for quadruped locomotion.")
        sys.stdout.flush()
    except UserError as error:
        print(f"ncap: error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader, for instance `head`, has seen enough
        _drop_output()
    except OSError as error:  # a disk that is full, a name that is too long: what the system refuses
        if error.filename is None:
            _drop_output()
        named = "" if error.filename is None else f"{error.filename}: "
        print(f"ncap: error: {named}{error.strerror or error}", file=sys.stderr)
        raise SystemExit(2) from None


def _drop_output() -> None:
    """Forget what standard output could not take: Python would try again at its end, and complain."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - open until the end
