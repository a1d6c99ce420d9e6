"""What `import ncap` costs and offers."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import ncap

HEAVY = {"numpy", "scipy", "matplotlib", "mujoco", "torch", "cmaes", "gymnasium", "ray", "viser", "rich.progress"}


def run_python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("module", ["ncap", "ncap.cli"])
def test_nothing_heavy_is_imported_before_it_is_used(module):
    loaded = run_python(f"import sys, {module}; print(*sys.modules)").split()
    assert HEAVY & set(loaded) == set()


def test_every_name_of_the_front_door_resolves():
    assert len(ncap.__all__) == len(set(ncap.__all__)) > 30
    missing = []
    for name in ncap.__all__:
        try:
            getattr(ncap, name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []
    assert set(ncap.__all__) == set(dir(ncap))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ncap' has no attribute 'walk'"):
        ncap.walk  # noqa: B018


def test_looking_for_a_policy_loads_no_simulator():
    loaded = run_python("import sys, ncap; ncap.load('ncap-flat-walk').controller(1); print(*sys.modules)").split()
    assert "numpy" in loaded
    assert not {"mujoco", "torch", "matplotlib"} & set(loaded)


def test_the_package_is_typed_and_says_its_version():
    assert (Path(ncap.__file__).parent / "py.typed").is_file()
    assert metadata.version("ncap").split(".")[0].isdigit()
    assert ncap.__version__.count(".") == 2
