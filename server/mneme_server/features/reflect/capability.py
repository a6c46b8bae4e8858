"""Reflecting: what an agent's own record says about how it works."""

from __future__ import annotations

from mneme.v1 import reflect_service_pb2

from mneme_server.capability import Capability, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.features.reflect.analyses import Analyses
from mneme_server.features.reflect.service import ReflectServicer
from mneme_server.features.reflect.settings import AnalysisSettings, read_prices


def _build(host: Host) -> Parts:
    prices = read_prices(host.settings(AnalysisSettings).model_prices)
    analyses = Analyses(host.tenants, prices)
    return Parts(
        services=[
            Service(
                reflect_service_pb2.DESCRIPTOR.services_by_name["ReflectService"],
                ReflectServicer(analyses),
            )
        ],
        offers=[analyses],
    )


CAPABILITY = Capability(name="reflect", build=_build)
