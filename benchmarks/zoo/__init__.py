"""All models of models/ on one chip of each kind: built, verified, and written up in docs/zoo.md."""
