"""Tests of the tools for coding agents."""
