"""Triton launches: the Python of a kernel and of the function that launches it, evaluated at sizes without a GPU.

:mod:`.host` follows a function to its launches, :mod:`.launch` evaluates some programs of a grid and adds them up,
:mod:`.program` evaluates one program, and :mod:`.occupancy` reads a data sheet. Indices are known numbers, what is
loaded is not: a count that depends on it is a range.
"""
