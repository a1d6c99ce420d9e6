"""Bodies: robots, terrains, and the batched simulator that moves them. Knows nothing of policies.

`robot`, `a1`, `go` and `legs` need NumPy only, so that a deployed policy does not load MuJoCo. Both data sheets are
registered here, so that whoever imports anything of this room knows all robots. MuJoCo chooses how to draw when it is
imported, and its own choice fails without a display: so the choice is made here, before anything else in this room.
"""

import ctypes
import os
import sys

if sys.platform == "linux" and not any(os.environ.get(name) for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")):
    for _name, _library in (("egl", "libEGL.so.1"), ("osmesa", "libOSMesa.so.8")):
        try:
            ctypes.CDLL(_library)
        except OSError:
            continue
        os.environ["MUJOCO_GL"] = _name
        break

from ncap.sim import a1 as a1
from ncap.sim import go as go
