"""One ONNX graph and one bucket in; the same function with fixed shapes, simplified and in canonical form out.

Knows no chip and no toolchain. `qnn.prepare.pipeline.prepare` runs in a child job; `request` and `prepared` are for
the parent and import neither onnx nor onnxruntime.
"""
