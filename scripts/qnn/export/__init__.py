"""PyTorch modules become ONNX files: export.py runs in the model's own environment, and its file is held to it."""
