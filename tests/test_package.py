import subprocess
import sys

REPORT = """
import numpy, scipy.linalg, ncap, threadpoolctl
print([info["num_threads"] for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas"])
"""


def run_python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_blas_has_one_thread_whether_numpy_or_ncap_is_imported_first():
    numpy_first = run_python(REPORT)
    ncap_first = run_python("import ncap\n" + REPORT)
    for printed in (numpy_first, ncap_first):
        threads = eval(printed)
        assert threads, "no BLAS library was found, so the test shows nothing"
        assert set(threads) == {1}


def test_help_stays_fast_because_nothing_heavy_is_imported():
    loaded = run_python("import sys, ncap.cli; print(*sys.modules)").split()
    assert not {"numpy", "scipy", "matplotlib", "mujoco", "cmaes", "rich.progress"} & set(loaded)
