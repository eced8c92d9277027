"""python -m qnn.cli: the same as qnn-forge."""

from qnn.cli import main

main()
