"""What would make a graph faster on the NPU: read from the graph, from what the compiler made of it, from its binary.

A rule is a module-level ``Rule`` of a file in `rules`, with a pure function of what was `seen`; `registry` lists them
in order and docs/hints.md is made from it (`python -m qnn.hints.page`). Hints never fail a build.
"""
