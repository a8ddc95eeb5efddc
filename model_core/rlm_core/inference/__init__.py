"""Canonical text and queries -> calibrated predictions: tokenizer, encoder, head, n-gram ridge, trees, calibration."""
