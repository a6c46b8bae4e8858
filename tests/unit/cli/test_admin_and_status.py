from __future__ import annotations

from mneme._core.convert import fill
from mneme.messages import (
    ApiKey,
    BackupResult,
    CreateApiKeyResponse,
    DeleteTenantResult,
    GetStatsResponse,
    KeyScope,
    ListApiKeysResponse,
    ListTenantsResponse,
    RestoreResult,
    Tenant,
)
from unit.cli.command import mneme
from unit.cli.operations import ends_with
from unit.client.scripted import ScriptedServer, failure


def test_tenants_are_listed_created_and_deleted(served: ScriptedServer) -> None:
    served.on("ListTenants", ListTenantsResponse(tenants=[Tenant(id="acme", display_name="Acme")]))
    assert mneme("admin", "tenants", "list").lines[1].split() == ["acme", "Acme"]
    assert mneme("admin", "tenants", "create", "acme", "--name", "Acme").out == (
        "created tenant acme\n"
    )
    assert served.last("CreateTenant").display_name == "Acme"
    ends_with(served, "DeleteTenant", DeleteTenantResult())
    assert mneme("admin", "tenants", "delete", "acme", "--yes").out == "deleted tenant acme\n"
    assert served.last("DeleteTenant").tenant_id == "acme"


def test_deleting_a_tenant_asks_first(served: ScriptedServer) -> None:
    ends_with(served, "DeleteTenant", DeleteTenantResult())
    refused = mneme("admin", "tenants", "delete", "acme", stdin="n\n")
    assert refused.code == 1
    assert "everything in it" in refused.err
    assert served.calls("DeleteTenant") == []
    assert mneme("admin", "tenants", "delete", "acme", stdin="y\n").code == 0
    assert len(served.calls("DeleteTenant")) == 1


def test_deleting_a_tenant_with_nobody_to_ask_deletes_nothing(served: ScriptedServer) -> None:
    assert mneme("admin", "tenants", "delete", "acme", stdin="").code == 1
    assert served.calls("DeleteTenant") == []


def test_a_new_key_s_secret_is_all_that_standard_output_holds(served: ScriptedServer) -> None:
    answer = CreateApiKeyResponse(api_key=ApiKey(id="k1"), secret="mn_secret")
    served.on("CreateApiKey", answer)
    result = mneme(
        *["admin", "keys", "create", "--tenant", "acme", "--name", "ci", "--scope", "read"],
        *["--scope", "Learn", "--rate-limit", "60"],
    )
    assert result.out == "mn_secret\n"
    assert "shown only this once" in result.err
    request = served.last("CreateApiKey")
    assert list(request.scopes) == [KeyScope.KEY_SCOPE_READ, KeyScope.KEY_SCOPE_LEARN]
    assert request.rate_limit == 60


def test_keys_are_listed_without_secrets_and_revoked(served: ScriptedServer) -> None:
    key = ApiKey(id="k1", tenant_id="acme", name="ci", prefix="mn_ab", scopes=[1, 2])
    served.on("ListApiKeys", ListApiKeysResponse(api_keys=[key]))
    result = mneme("admin", "keys", "list", "--tenant", "acme", "--revoked")
    assert result.lines[1].split()[:5] == ["k1", "acme", "ci", "read,write", "mn_ab"]
    assert served.last("ListApiKeys").include_revoked
    assert mneme("admin", "keys", "revoke", "k1").out == "revoked key k1\n"


def test_a_backup_says_where_it_is(served: ScriptedServer) -> None:
    ends_with(served, "Backup", BackupResult(path="/b/x.tar", size_bytes=1500, sha256="ab"))
    assert mneme("admin", "backup", "--tenant", "acme").out == "/b/x.tar (1.5 kB, sha256 ab)\n"
    assert served.last("Backup").tenant_id == "acme"


def test_status_shows_server_model_and_counts(served: ScriptedServer) -> None:
    answer = GetStatsResponse()
    server = {"version": "0.1.0", "embedding_model": "MiniLM", "embedding_dimensions": 384}
    tenant = {
        "tenant_id": "acme",
        "memory_count": 12345,
        "vector_count": 1,
        "pending_count": 7,
        "event_count": 12000,
        "session_count": 200,
        "agent_count": 1,
        "disk_bytes": 53_200_000,
        "dense_index": "exact",
    }
    fill(answer, {"server": server, "tenant": tenant})
    served.on("GetStats", answer)
    text = mneme("status").out
    assert f"Server    0.1.0 at {served.address}, up " in text
    assert "Model     MiniLM, 384 dimensions" in text
    assert "Memories  12,345 (1 vector, searched by exact)" in text
    assert "Waiting   7 embeddings" in text
    assert "Events    12,000 in 200 sessions of 1 agent" in text
    assert "On disk   53.2 MB" in text
    assert "Failed" not in text
    assert mneme("status", "--json").documents[0]["tenant"]["pending_count"] == 7


def test_a_key_that_may_not_do_it_has_an_exit_code_of_its_own(served: ScriptedServer) -> None:
    served.on(
        "ListTenants",
        lambda request, context: failure(
            context, "PERMISSION_DENIED", "the key lacks scope admin", reason="SCOPE_MISSING"
        ),
    )
    result = mneme("admin", "tenants", "list")
    assert result.code == 4
    assert result.err == "mneme: the key lacks scope admin [SCOPE_MISSING]\n"


def test_restore_takes_a_backup_s_name_or_path_and_names_what_it_replaced(
    served: ScriptedServer,
) -> None:
    ends_with(served, "Restore", RestoreResult(replaced_path="/srv/backups/acme/02.db"))
    line = ["admin", "restore", "/srv/backups/acme/01.db", "--tenant", "acme"]
    assert mneme(*line, stdin="n\n").code == 1
    assert served.seen == []
    result = mneme(*line, "--yes")
    assert result.out == "restored 01.db; what was there before is /srv/backups/acme/02.db\n"
    request = served.last("Restore")
    assert (request.tenant_id, request.backup) == ("acme", "01.db")
