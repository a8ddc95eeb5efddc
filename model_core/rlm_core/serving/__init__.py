"""One machine serves a team: a predictor over HTTP, the predictor that asks it, and work spread over a Ray cluster.

``client`` is part of the base install; ``server`` needs the ``[serve]`` extra and is imported by its command only.
"""
