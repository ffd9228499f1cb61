"""A figure that the project promises, as a run has it."""

from dataclasses import asdict, dataclass


@dataclass
class Promise:
    what: str
    where: str
    measured: float
    limit: float  # the most that is promised

    @property
    def met(self) -> bool:
        return self.measured <= self.limit

    def as_dict(self) -> dict:
        return {**asdict(self), "met": self.met}
