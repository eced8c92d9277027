"""Pull: from a model's name and a chip's to the one file that loads on it (docs/pull.md)."""
