"""What docs/design/performance.md quotes. `make bench` runs all; `python -m benchmarks circuit` one."""

from ncap.threads import pin_process

pin_process()
