"""What docs/performance.md quotes. `make bench` runs all; `python -m benchmarks circuit` one."""
