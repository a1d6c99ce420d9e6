"""`python -m ncap` is the command line."""

from ncap.cli import main

main()
