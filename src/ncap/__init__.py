"""Neural circuit architectural priors for quadruped locomotion.

Importing this package pins BLAS to one thread: our matrices are small, work is parallel over simulations, and
unpinned BLAS threads make small products many times slower on a busy machine and results dependent on the core count.
"""

import os
import sys

__version__ = "0.1.0"

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_variable] = "1"
if "numpy" in sys.modules:  # too late for the environment: ask the loaded libraries themselves
    import threadpoolctl

    threadpoolctl.threadpool_limits(1, user_api="blas")
