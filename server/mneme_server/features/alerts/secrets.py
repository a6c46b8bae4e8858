"""What a tenant's webhooks are signed with."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from mneme_server.common.clock import DAY_US, now_us
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.features.alerts.model import Secret
from mneme_server.features.alerts.ports import AlertsUnit

_PREFIX = "whsec_"
_BYTES = 32
OVERLAP_US = DAY_US
"""How long webhooks are signed with the secret before, too."""


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """The use cases of secrets. One is made when it is first asked for."""

    tenants: OpenTenants[AlertsUnit]
    now: Callable[[], int] = now_us

    def get(self, tenant_id: str) -> Secret:
        """Return the tenant's secret."""
        with self.tenants.open(tenant_id) as tenant:
            return self.of(tenant)

    def of(self, tenant: OpenTenant[AlertsUnit]) -> Secret:
        """Return the secret of a tenant that is open."""
        with tenant.read() as unit:
            known = unit.alert_secrets.get()
        if known is not None:
            return known
        with tenant.write() as unit:
            known = unit.alert_secrets.get()  # Somebody else may have made it meanwhile.
            if known is None:
                known = Secret(_made(), self.now())
                unit.alert_secrets.set(known)
            return known

    def rotate(self, tenant_id: str) -> Secret:
        """Make a new secret, and return it."""
        now = self.now()
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            before = unit.alert_secrets.get()
            made = Secret(_made(), now)
            if before is not None:
                made = Secret(made.text, now, before.text, now + OVERLAP_US)
            unit.alert_secrets.set(made)
        return made


def key_of(text: str) -> bytes:
    """Return the key that a secret's text stands for."""
    return base64.b64decode(text.removeprefix(_PREFIX))


def _made() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()
