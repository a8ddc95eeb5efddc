"""Training the student: labels -> weights. Needs the ``[train]`` extra; nothing here is imported by the server."""
