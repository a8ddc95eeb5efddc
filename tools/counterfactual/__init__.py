"""Our own functions and edits of them, measured: labels with their text, and the builder of their rows.

Run it with ``python -m tools.counterfactual``.
"""
