"""Measuring Triton kernels, PyTorch modules and ONNX models on this machine: files in, one row a measurement out.

The parent (``worker``) reads no user code; a child process (``child``) imports and runs it, a case at a time and under
a time limit, so that a bad kernel costs only its own row. ``rows`` keeps each row as it is made. Nothing here runs but
on an explicit command (``rlm-lsp bench``).
"""
