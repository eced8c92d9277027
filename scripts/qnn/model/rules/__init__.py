"""Lint rules, one class each, by topic."""
