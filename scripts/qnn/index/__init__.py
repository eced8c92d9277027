"""The index: the machine-readable list of everything published (docs/index.md)."""
