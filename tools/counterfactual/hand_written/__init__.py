"""Functions written by hand, as people write them, whose text fixes their cost; and their measured labels.

Generated functions are made of what the analysis of work knows. These are not, so the bands of texts that fix their
cost are calibrated on them.
"""
