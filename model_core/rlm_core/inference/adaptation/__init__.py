"""Devices that the model was not trained on, adapted from 10 to 100 measurements each, with frozen weights.

``measurements`` reads what was measured, ``build`` asks the model about it and fits, ``fit`` is the method on plain
matrices, ``store`` keeps adapters as JSON, ``predictor`` answers queries on adapted devices, and ``cpu_score`` scales
latencies of functions to this machine's CPU.
"""
