"""Generated Python functions and edits of them, measured: what a loop around a loop, a sort or a copy costs.

A seed goes in; :mod:`.generator` writes groups of a function and its edits, :mod:`.measuring` measures them into a
label file, :mod:`.builder` makes rows of basis ``call``. Run it with ``python -m tools.counterfactual``.
"""
