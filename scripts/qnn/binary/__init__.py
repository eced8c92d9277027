"""Context binaries: read one back, say what it holds, hold it against what was planned."""

from qnn.binary.info import ContextBinary
from qnn.binary.qnn_system import inspect_file, read_context_binary

__all__ = ["ContextBinary", "inspect_file", "read_context_binary"]
