"""How much abuse the product survives: each module runs long from the command line, and a bounded sample in pytest.

``python -m tests.reliability.random_edits --edits 1000000 --seed 1`` runs one of them for as long as its size asks.
The figures are in ``docs/reliability.md``.
"""
