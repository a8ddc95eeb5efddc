"""``rlm-lsp tune``: a trained model and a team's measurements -> a model that knows the team's code.

The encoder stays as it is, so a laptop does it in minutes. ``data`` reads the measurements and asks the loaded
``student`` about them; ``corrections`` and the task heads of ``tuners`` learn what it misses, fitted with groups left
out, ``judging`` compares before and after; ``run`` puts this in order, ``refit`` and ``full`` are its variants.
"""
