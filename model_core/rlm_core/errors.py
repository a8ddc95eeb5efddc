"""Errors a user can act on. Their text is one line: what, where, what to do."""


class RlmError(Exception):
    """Bad input or a broken installation; ``str(error)`` is one line meant for the user."""


class SourceError(RlmError):
    """A source file that cannot be read as code (missing, binary, empty, too large, not UTF-8, unknown language)."""


class AnalysisError(SourceError):
    """A text that cannot be analysed; the error does not name it."""


class TooComplexError(AnalysisError):
    """A text whose analysis would take too long."""


class StoppedError(Exception):
    """Work that is given up because its result is not needed any more."""


class ModelError(RlmError):
    """A model directory that is missing, incomplete, corrupt or of another format version."""


class DataError(RlmError):
    """Labels, a data set or a source cache that cannot be used."""
