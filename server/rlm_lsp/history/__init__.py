"""What was: texts at git ``HEAD``, the comparison with them, and stored measurements."""
