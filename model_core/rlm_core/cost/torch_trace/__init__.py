"""Shapes and costs of PyTorch code, derived from its source text; nothing is run."""
