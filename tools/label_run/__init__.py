"""Measures cost curves of functions of packages from PyPI: labels of how functions grow with their inputs."""
