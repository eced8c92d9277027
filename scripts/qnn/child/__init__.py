"""Child processes for everything that can abort, hang, print or eat memory: the compiler, the emulator, ONNX tools."""

from qnn.child.client import Host, HostPool, Limits, Usage

__all__ = ["Host", "HostPool", "Limits", "Usage"]
