"""qnn-forge: from one model YAML to verified Hexagon (HTP) context binaries."""

__version__ = "0.1.0"
