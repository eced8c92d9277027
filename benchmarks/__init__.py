"""Benchmarks. Each runs both sides in one go and prints a ratio; `python -m benchmarks` writes docs/performance.md."""
