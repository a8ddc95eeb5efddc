"""Errors a user can act on. Their text is one line: what, where, what to do."""


class RlmError(Exception):
    """Bad input or a broken installation; ``str(error)`` is one line meant for the user."""


class SourceError(RlmError):
    """A source file that cannot be read as code (missing, binary, empty, too large, not UTF-8, unknown language)."""


class TooComplexError(SourceError):
    """A text whose analysis would take too long."""


class ModelError(RlmError):
    """A model directory that is missing, incomplete, corrupt or of another format version."""


class DataError(RlmError):
    """Labels, a data set or a source cache that cannot be used."""
