"""The application that commands register with, and words that several of them use."""

from typing import Annotated, Final

import tyro
from tyro.extras import SubcommandApp

app: Final = SubcommandApp()

Words = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME …")]
Json = Annotated[bool, tyro.conf.arg(name="json")]
