"""The examples of docs/api, and what they need that none of them makes."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import learning_service_pb2 as learning_pb
from mneme.v1 import skill_service_pb2 as skill_pb

from support.server import REPOSITORY

EXAMPLES: dict[str, Any] = json.loads((REPOSITORY / "scripts/api_examples.json").read_text())
"""What each RPC is sent, by its name; several messages where it takes a stream."""


def needed() -> dict[str, Message]:
    """Return the calls to make before the examples: a tenant to delete, a skill to link and delete,
    a learning session to transfer to."""
    target = EXAMPLES["LearningService.StartSession"] | {"session_id": "next-project"}
    return {
        "AdminService.CreateTenant": admin_pb.CreateTenantRequest(tenant_id="archive"),
        "SkillService.CreateSkill": skill_pb.CreateSkillRequest(
            skill_id="run-tests", name="run_tests"
        ),
        "LearningService.StartSession": ParseDict(
            target, learning_pb.LearningServiceStartSessionRequest()
        ),
    }
