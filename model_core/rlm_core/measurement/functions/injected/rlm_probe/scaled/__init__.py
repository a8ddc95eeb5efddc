"""Calls the functions of measured packages again, with larger inputs, in a separate process.

``worker`` reads an order and answers with a line of JSON per function;
``value_growth`` and ``text_growth`` make inputs larger, ``guard`` refuses what has effects, ``curve`` times the calls.
"""
