"""Measuring Triton kernels, PyTorch modules and ONNX models on this machine: files in, one row per measurement out.

The parent (``worker``) never imports user code. A child process (``runner_process``) imports and runs it, one case at a
time and under a time limit, so that a bad kernel affects only its row. ``bench_rows`` appends each row as it is made.
Nothing here runs without an explicit command (``rlm-lsp bench``).
"""
