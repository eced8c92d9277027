"""Fetching files from PyPI, the Hub, https, GitHub and the model folder, verified while they are written."""
