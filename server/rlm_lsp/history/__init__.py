"""The past of a file: its text and units at a git revision, and stored measurements."""
