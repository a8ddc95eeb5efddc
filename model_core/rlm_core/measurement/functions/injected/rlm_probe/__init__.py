"""Runs inside the measured tests: times functions or follows their peak memory, and writes the samples to files.

It needs nothing but Python and pytest, so that it can run under an interpreter that has no rlm-lsp: the folder that
holds this package, and nothing else, goes on ``PYTHONPATH``. ``plugin`` speaks with pytest, ``function_registry``
decides which calls are taken, ``latency`` and ``memory`` measure one call, ``input_sizes`` takes the sizes of its
inputs, ``monitoring`` (3.12 on) and ``injection`` (3.11) say when calls begin and end, ``recording_writer`` writes.
"""
