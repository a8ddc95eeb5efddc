"""Settings: one typed model with defaults, documentation and validation, and the sources that it is resolved from."""
