"""The pip toolchain: the real HTP compiler and emulator of the onnxruntime-qnn wheel."""

from qnn.toolchains.pip.toolchain import PipToolchain

__all__ = ["PipToolchain"]
