from __future__ import annotations

from mneme.messages import UpdateEpisodeResponse, UpdateSkillResponse
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer


def test_an_update_of_an_episode_sends_the_given_fields_only(served: ScriptedServer) -> None:
    served.on("UpdateEpisode", UpdateEpisodeResponse())
    result = mneme(
        "episodes", "update", "01E", "--failure", "--reward", "0", "--tag", "", "--etag", "e"
    )
    assert result.lines == ["updated 01E"]
    request = served.last("UpdateEpisode")
    assert sorted(request.update_mask.paths) == ["reward", "success", "tags"]
    assert (request.episode.success, request.episode.reward) == (False, 0)
    assert (request.episode.id, request.episode.etag) == ("01E", "e")


def test_an_update_of_a_skill_sends_the_given_fields_only(served: ScriptedServer) -> None:
    served.on("UpdateSkill", UpdateSkillResponse())
    mneme("skills", "update", "01S", "--description", "new", "--project", "")
    request = served.last("UpdateSkill")
    assert sorted(request.update_mask.paths) == ["description", "project"]
    assert (request.skill.id, request.skill.description) == ("01S", "new")
