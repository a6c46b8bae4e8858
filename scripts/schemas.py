"""The services of the API, from its generated code."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module

import mneme.v1
from google.protobuf.descriptor import ServiceDescriptor


def services() -> Sequence[ServiceDescriptor]:
    """Return every service."""
    return [
        service
        for module in pkgutil.iter_modules(mneme.v1.__path__)
        if module.name.endswith("_service_pb2")
        for service in import_module(f"mneme.v1.{module.name}").DESCRIPTOR.services_by_name.values()
    ]
