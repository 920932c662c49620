"""Plays every call of UpGrade's published Python client against a server: `play.py URL CONTEXT SITE`."""

import asyncio
import sys

from upgrade_client_lib import UpgradeClient
from upgrade_client_lib.exceptions import UpgradeApiError
from upgrade_client_lib.types.enums import BinaryRewardValue, ExperimentType, MarkedDecisionPointStatus
from upgrade_client_lib.types.requests import LogInput

url, context, site = sys.argv[1:]
target = "plain"
APPLIED = MarkedDecisionPointStatus.CONDITION_APPLIED


async def main():
    client = UpgradeClient("ada", url, context)
    user = await client.init({"classId": ["c1"]}, {"classId": "c1"})
    assert (user.id, user.group, user.workingGroup) == ("ada", {"classId": ["c1"]}, {"classId": "c1"}), user
    user = await client.set_group_membership({"classId": ["c1", "c2"]})
    assert user.group == {"classId": ["c1", "c2"]}, user
    user = await client.set_working_group({"classId": "c2"})
    assert user.workingGroup == {"classId": "c2"}, user

    all_assignments = await client.get_all_experiment_conditions(ignore_cache=True)
    assert len(all_assignments) == 2, all_assignments
    here = await client.get_decision_point_assignment(site, target)
    assert here.get_payload().value == f"p-{here.get_condition()}", here.get_payload()
    assert here.get_experiment_type() == ExperimentType.SIMPLE
    marked = await here.mark_decision_point(APPLIED, uniquifier="u1")
    assert (marked.userId, marked.site, marked.condition) == ("ada", site, here.get_condition()), marked
    again = await client.mark_decision_point(here.get_condition(), APPLIED, site, target, client_error="none")
    assert again.experimentId == marked.experimentId, again

    factorial = await client.get_decision_point_assignment(site, "fact")
    assert sorted(factorial.factors) == ["Color", "Size"], factorial.factors
    level = factorial.get_factor_level("Color")
    assert f"Color={level}" in factorial.get_condition()
    assert factorial.get_factor_payload("Color").value == f"{level}-p"
    marked = await factorial.mark_decision_point(MarkedDecisionPointStatus.CONDITION_FAILED_TO_APPLY)
    assert (marked.site, marked.target) == (site, "fact"), marked

    assert await client.get_all_feature_flags() == [], "there are no flags"
    assert not await client.has_feature_flag("dark-mode")
    metrics = {
        "attributes": {"seconds": 12, "done": "yes"},
        "groupedMetrics": [
            {"groupClass": "quiz", "groupKey": "1", "groupUniquifier": "q1", "attributes": {"score": 3}}
        ],
    }
    logged = await client.log([LogInput.model_validate({"timestamp": "2026-11-28T12:00:00Z", "metrics": metrics})])
    assert [log.uniquifier for log in logged] == [], "no query of an experiment uses them"
    aliases = await client.set_alt_user_ids(["ada-at-home"])
    assert aliases.aliases == ["ada-at-home"], aliases
    alias = UpgradeClient("ada-at-home", url, context)
    at_home = await alias.get_decision_point_assignment(site, target)
    assert at_home.get_condition() == here.get_condition(), "an alias is the same student"

    try:
        await client.send_reward(BinaryRewardValue.SUCCESS, experiment_id=marked.experimentId)
        raise AssertionError("rewards are for adaptive experiments")
    except UpgradeApiError as error:
        assert error.status_code == 400, error
    try:
        await UpgradeClient("nobody", url, context).get_all_experiment_conditions()
        raise AssertionError("the student is unknown")
    except UpgradeApiError as error:
        assert error.status_code == 404, error


asyncio.run(main())
again = UpgradeClient("bob", url, context)
again.init_sync()
assert again.get_decision_point_assignment_sync(site, target).mark_decision_point_sync(APPLIED).userId == "bob"
print("the Python client was served")
