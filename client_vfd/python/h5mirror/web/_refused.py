"""What is not done for a visitor, and why."""


class Refused(Exception):
    """Told to the visitor, with a status of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
