"""Results of other tools as measurements: profiles of cProfile, benchmarks of pytest-benchmark and CodSpeed.

``profiles`` and ``benchmarks`` read files as timings of functions; ``places`` finds the functions in the project.
``marshal_data`` decodes profiles, since Python's ``marshal`` may crash on a damaged file.
"""
