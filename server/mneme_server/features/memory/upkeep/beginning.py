"""Making a tenant's memory ready, or empty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason
from mneme_server.features.admin.ports import Backup
from mneme_server.features.memory.upkeep.model import Report
from mneme_server.features.memory.upkeep.reporting import ReportMemory


class Emptying(Protocol):
    """Replaces what a tenant holds by nothing."""

    def empty(self, tenant_id: str) -> Backup:
        """Make the tenant's database an empty one; return a backup of what was there."""
        ...


@dataclass(frozen=True, slots=True)
class BeginMemory:
    """The use case: make a tenant's memory ready, and say what is there."""

    report: ReportMemory
    emptying: Emptying

    def __call__(
        self, tenant_id: str, *, model: str, dimensions: int, reset: bool, confirmed: str
    ) -> tuple[Report, str]:
        """Return what is there, and the file name of the backup of what was there before, if it was
        reset.

        Raises:
            FailedPrecondition: DIMENSION_MISMATCH, the server's model is another.
            InvalidArgument: it is to be reset, and the tenant is not named.
        """
        self._require(model, dimensions)
        backup = ""
        if reset:
            if confirmed != tenant_id:
                raise InvalidArgument(
                    f"reset replaces all that the tenant {tenant_id} holds, also its events, by"
                    f" nothing; to confirm, set confirm_tenant_id to {tenant_id!r}",
                    field="confirm_tenant_id",
                )
            backup = PurePath(self.emptying.empty(tenant_id).path).name
        return self.report(tenant_id), backup

    def _require(self, model: str, dimensions: int) -> None:
        served = self.report.model
        wrong = model and not _names(model, served)
        if wrong or dimensions not in (0, self.report.dimensions):
            raise FailedPrecondition(
                f"the server's embedding model is {served}, of {self.report.dimensions} dimensions;"
                " MNEME_EMBEDDER chooses another, for all tenants",
                reason=Reason.DIMENSION_MISMATCH,
                field="model" if wrong else "dimension",
            )


def _names(model: str, served: str) -> bool:
    """Tell whether a model's name is that of the one served, or the part of it that people use."""
    return model.rpartition("/")[2].casefold() in served.casefold()
