"""Does a graph fit fp16's range? A float run with every tensor looked at, and what HTP would make of what does not fit.

HTP's 16-bit float ends at 65,504 and begins at 6e-8, and answers what lies beyond with finite numbers that no check
for NaN finds (qnn.verify.saturation has the measurements). `job` runs in a child; `facts`, `request` and `verdict` are
for the parent and import neither onnx nor NumPy.
"""
