"""A refusal for a visitor, with its reason."""

import errno

_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS)


class Refused(Exception):
    """Told to the visitor, with a status of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def refused_by(error: Exception) -> Refused:
    """Of a failure that no caller has put into words: 409 where a file of the page's host cannot be read, else 500."""
    if isinstance(error, OSError) and error.errno in _NOT_OURS:
        return Refused(409, f"{error.filename or 'a file of the host of this page'} cannot be read here: {error.strerror}")
    return Refused(500, "this page has failed; standard error of `h5mirror web` says why")
