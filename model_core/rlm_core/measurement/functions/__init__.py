"""Functions, timed while the tests of their package run."""
