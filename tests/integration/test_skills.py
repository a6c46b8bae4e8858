"""Skills: what works for a kind of task, how often, and what belongs together."""

from __future__ import annotations

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import skill_service_pb2 as pb
from support.api import Api, grpc, refused
from support.making import at, skill, struct
from support.server import LocalServer

PREREQUISITE = pb.SKILL_RELATIONSHIP_PREREQUISITE
ALTERNATIVE = pb.SKILL_RELATIONSHIP_ALTERNATIVE


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("skills")


def get(api: Api, skill_id: str) -> pb.GetSkillResponse:
    return api.skill.GetSkill(pb.GetSkillRequest(skill_id=skill_id))


def use(api: Api, skill_id: str, *, success: bool = True, **fields: object) -> pb.Skill:
    request = pb.RecordSkillUseRequest(
        skill_id=skill_id,
        success=success,
        **fields,  # type: ignore[arg-type]
    )
    return api.skill.RecordSkillUse(request).skill


def search(api: Api, task: str, *, limit: int = 10, **filter_: object) -> pb.SearchSkillsResponse:
    request = pb.SearchSkillsRequest(
        task=task,
        limit=limit,
        filter=pb.SkillFilter(**filter_),  # type: ignore[arg-type]
    )
    return api.skill.SearchSkills(request)


def names(answer: pb.SearchSkillsResponse) -> list[str]:
    return [found.skill.name for found in answer.results]


def link(
    api: Api, parent: str, child: str, relationship: pb.SkillRelationship = PREREQUISITE
) -> pb.SkillLink:
    request = pb.LinkSkillsRequest(
        parent_skill_id=parent, child_skill_id=child, relationship=relationship
    )
    return api.skill.LinkSkills(request).link


def update(api: Api, skill_id: str, **fields: object) -> pb.Skill:
    request = pb.UpdateSkillRequest(
        skill=pb.Skill(id=skill_id, **fields),  # type: ignore[arg-type]
        update_mask=FieldMask(paths=list(fields)),
    )
    return api.skill.UpdateSkill(request).skill


def test_a_saved_skill_is_returned_as_it_was_given(api: Api) -> None:
    signature = pb.SkillSignature(inputs=struct(url="where"), outputs=struct(token="a JWT"))
    saved = skill(
        api, "oauth2_login", skill_id="s", description="Log in with PKCE", signature=signature,
        code="login()", project="shop", tags=["b", "a", "b"], metadata=struct(by="ann"),
        claimed_success_rate=0.95, source_episode_ids=["e-2", "e-1"],
    )  # fmt: skip
    assert (saved.name, saved.code, list(saved.tags)) == ("oauth2_login", "login()", ["a", "b"])
    assert saved.signature == signature
    assert list(saved.source_episode_ids) == ["e-2", "e-1"]
    assert (saved.record.uses, saved.record.HasField("success_rate")) == (0, False)
    assert (saved.record.lower_bound, saved.record.upper_bound) == (0, 1)
    assert get(api, "s").skill == saved


def test_names_are_unique(api: Api) -> None:
    first = skill(api, "deploy", skill_id="s")
    assert skill(api, "deploy", skill_id="s") == first
    with refused() as failure:
        skill(api, "deploy")
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "name")
    with refused() as failure:
        skill(api, "deploy", skill_id="s", code="other")
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "skill_id")
    assert skill(api, "Deploy").name == "Deploy"
    skill(api, "free", skill_id="t")
    with refused() as failure:
        update(api, "t", name="deploy")
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "skill.name")


def test_an_update_changes_what_the_mask_names(api: Api) -> None:
    skill(api, "deploy", skill_id="s", code="make deploy", claimed_success_rate=0.9)
    use(api, "s")
    changed = update(api, "s", description="Ship it to production", tags=["ops"])
    assert (changed.code, list(changed.tags)) == ("make deploy", ["ops"])
    assert changed.record.uses == 1
    assert names(search(api, "release the program to our users"))[0] == "deploy"
    request = pb.UpdateSkillRequest(
        skill=pb.Skill(id="s"), update_mask=FieldMask(paths=["claimed_success_rate"])
    )
    assert not api.skill.UpdateSkill(request).skill.HasField("claimed_success_rate")
    with refused() as failure:
        update(api, "s", name="")
    assert failure.reason == "MISSING_REQUIRED_FIELD"


def test_uses_make_a_record(api: Api) -> None:
    skill(api, "deploy", skill_id="s")
    use(api, "s", reward=1.0, latency_ms=100, used_at=at(1))
    use(api, "s", reward=0.5, used_at=at(9))
    record = use(api, "s", success=False, latency_ms=300, used_at=at(5)).record
    assert (record.uses, record.successes) == (3, 2)
    assert record.success_rate == pytest.approx(2 / 3)
    assert (record.lower_bound, record.upper_bound) == pytest.approx((0.2077, 0.9385), abs=1e-4)
    assert (record.average_reward, record.average_latency_ms) == (0.75, 200)
    assert record.last_used_at == at(9)
    assert get(api, "s").skill.record == record


def test_the_same_use_again_counts_once(api: Api) -> None:
    skill(api, "deploy", skill_id="s")
    for _ in range(2):
        assert use(api, "s", use_id="u", reward=1.0).record.uses == 1
    with refused() as failure:
        use(api, "s", use_id="u", success=False)
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "use_id")
    skill(api, "other", skill_id="t")
    assert use(api, "t", use_id="u").record.uses == 1


def test_of_skills_that_fit_alike_the_one_that_is_known_to_work_comes_first(api: Api) -> None:
    for name in ("never", "lucky", "proven", "broken"):
        skill(api, name, skill_id=name, description="roll back a failed deployment")
    use(api, "lucky")
    for _ in range(20):
        use(api, "proven")
        use(api, "broken", success=False)
    skill(api, "elsewhere", skill_id="elsewhere", description="water the plants")
    for _ in range(50):
        use(api, "elsewhere")
    answer = search(api, "roll back a failed deployment")
    assert names(answer)[:2] == ["proven", "lucky"]
    assert names(answer)[-1] == "elsewhere"
    for found in answer.results:
        low = found.skill.record.lower_bound
        assert found.score == pytest.approx(found.relevance * (1 + low) / 2)


def test_a_least_success_rate_goes_into_the_search(api: Api) -> None:
    for number in range(250):
        skill(api, f"roll back, way {number}", claimed_success_rate=0.2)
    skill(api, "claimed", skill_id="claimed", claimed_success_rate=0.8)
    skill(api, "measured", skill_id="measured", claimed_success_rate=0.1)
    for success in (True, True, True, False):
        use(api, "measured", success=success)
    answer = search(api, "roll back, way 7", min_success_rate=0.75)
    assert (sorted(names(answer)), answer.searched_count) == (["claimed", "measured"], 2)
    use(api, "claimed", success=False)
    assert names(search(api, "roll back, way 7", min_success_rate=0.75)) == ["measured"]
    listed = pb.ListSkillsRequest(filter=pb.SkillFilter(min_success_rate=0.75))
    assert [found.id for found in api.skill.ListSkills(listed).skills] == ["measured"]


def test_links_are_shown_from_either_side(api: Api) -> None:
    for name in ("login", "checkout", "guest"):
        skill(api, name, skill_id=name)
    link(api, "login", "checkout")
    link(api, "login", "guest", ALTERNATIVE)
    shown = [(one.parent_name, one.child_name, one.weight) for one in get(api, "login").links]
    assert shown == [("login", "checkout", 1), ("login", "guest", 1)]
    (mine,) = get(api, "checkout").links
    assert (mine.parent_skill_id, mine.relationship) == ("login", PREREQUISITE)
    request = pb.LinkSkillsRequest(
        parent_skill_id="login", child_skill_id="checkout", relationship=PREREQUISITE, weight=0.0
    )
    assert api.skill.LinkSkills(request).link.weight == 0
    (found,) = search(api, "checkout", limit=1).results
    assert [(one.parent_name, one.weight) for one in found.links] == [("login", 0)]
    gone = pb.UnlinkSkillsRequest(parent_skill_id="login", child_skill_id="checkout")
    assert [api.skill.UnlinkSkills(gone).removed_count for _ in range(2)] == [1, 0]
    assert list(get(api, "checkout").links) == []


def test_a_circle_of_prerequisites_is_refused_and_named(api: Api) -> None:
    for name in ("a", "b", "c"):
        skill(api, f"skill {name}", skill_id=name)
    link(api, "a", "b")
    link(api, "b", "c")
    with refused() as failure:
        link(api, "c", "a")
    assert failure.code is grpc.StatusCode.FAILED_PRECONDITION
    assert failure.reason == "CONSTRAINT_VIOLATION"
    assert "'skill c' → 'skill a' → 'skill b' → 'skill c'" in failure.message
    assert link(api, "c", "a", ALTERNATIVE).relationship == ALTERNATIVE
    with refused() as failure:
        link(api, "a", "a", ALTERNATIVE)
    assert (failure.code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "child_skill_id")


def test_a_deleted_skill_takes_its_links_and_uses_with_it(api: Api) -> None:
    skill(api, "login", skill_id="login")
    skill(api, "checkout", skill_id="checkout")
    link(api, "login", "checkout")
    use(api, "login", use_id="u")
    gone = api.skill.DeleteSkill(pb.DeleteSkillRequest(skill_id="login")).skill
    assert (gone.name, gone.record.uses) == ("login", 1)
    assert list(get(api, "checkout").links) == []
    assert names(search(api, "login")) == ["checkout"]
    with refused() as failure:
        get(api, "login")
    assert (failure.code, failure.field) == (grpc.StatusCode.NOT_FOUND, "skill_id")
    assert skill(api, "login", skill_id="login").record.uses == 0
    assert use(api, "login", use_id="u", success=False).record.uses == 1


def test_skills_are_listed_by_name_page_by_page(api: Api) -> None:
    for name in ("charlie", "alpha", "bravo"):
        skill(api, name, tags=["x"] if name != "bravo" else [])
    first = api.skill.ListSkills(pb.ListSkillsRequest(page_size=2))
    assert ([one.name for one in first.skills], first.total_size) == (["alpha", "bravo"], 3)
    rest = api.skill.ListSkills(pb.ListSkillsRequest(page_size=2, page_token=first.next_page_token))
    assert ([one.name for one in rest.skills], rest.next_page_token) == (["charlie"], "")
    tagged = api.skill.ListSkills(pb.ListSkillsRequest(filter=pb.SkillFilter(tags=["x"])))
    assert [one.name for one in tagged.skills] == ["alpha", "charlie"]


def test_recall_finds_skills_in_their_own_scope(api: Api) -> None:
    skill(api, "roll_back", skill_id="s", description="roll back a failed deployment")
    use(api, "s")
    request = recall_pb.RecallRequest(query="undo a deployment", scopes=["SKILL"])
    (found,) = api.recall.Recall(request).results
    assert (found.source_type, found.source_id) == ("skill", "s")
    assert (found.metadata["name"], found.metadata["uses"]) == ("roll_back", 1)
    assert found.metadata["success_rate"] == 1
