"""Measured latencies of real networks -> data sets: labels, the export of their graphs, and rows."""
