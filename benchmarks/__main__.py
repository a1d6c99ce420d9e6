"""Run benchmarks by name, or all of them."""

import importlib
import sys

NAMES = ("circuit", "engine", "training", "cluster", "scaling", "rl", "deploy", "links")

names = sys.argv[1:] or NAMES
for name in names:
    if name not in NAMES:
        sys.exit(f"unknown benchmark {name!r}; valid: {', '.join(NAMES)}")
for name in names:
    importlib.import_module(f"benchmarks.{name}").main()
