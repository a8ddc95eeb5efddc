"""ONNX graphs: read from a model, rendered as compact text, parsed back from it, and their costs."""
