"""Source text, read without running it: languages, units, canonical text, call graph, PyTorch traces, ONNX graphs."""
