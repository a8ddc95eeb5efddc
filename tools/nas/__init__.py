"""Networks of NAS benchmarks: architecture codes -> ONNX graphs -> rows with measured accuracy and latency.

Run it with ``python -m tools.nas``.
"""
