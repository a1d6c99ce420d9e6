"""Run benchmarks by name, or all of them."""

import importlib
import sys

NAMES = ("circuit", "engine", "training", "cluster", "scaling", "rl", "deploy", "links")

LONG = ("memory",)
"""Only by name."""

names = sys.argv[1:] or NAMES
for name in names:
    if name not in NAMES + LONG:
        sys.exit(f"unknown benchmark {name!r}; valid: {', '.join(NAMES + LONG)}")
for name in names:
    importlib.import_module(f"benchmarks.{name}").main()
