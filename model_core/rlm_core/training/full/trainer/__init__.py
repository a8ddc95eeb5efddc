"""Training of the full model: data sets in, a directory for ``--model`` out; and students that learn from it."""
