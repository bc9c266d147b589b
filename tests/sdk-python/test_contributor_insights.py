"""Contributor Insights through the SDK, and the hot keys that they report."""

import json
import urllib.request

import pytest

import support
from support import create_table, put, s


def summaries(pages):
    return [
        (it["TableName"], it.get("IndexName"), it["ContributorInsightsStatus"], it["ContributorInsightsMode"])
        for page in pages
        for it in page["ContributorInsightsSummaries"]
    ]


def test_insights_of_a_table_and_its_index(dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:N", gsi=[("by-state", "state:S")])
    described = dynamodb.describe_contributor_insights(TableName=table)
    del described["ResponseMetadata"]
    assert described == {"TableName": table, "ContributorInsightsStatus": "DISABLED"}

    updated = dynamodb.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE")
    assert updated["ContributorInsightsStatus"] == "ENABLING"
    assert updated["ContributorInsightsMode"] == "ACCESSED_AND_THROTTLED_KEYS"
    dynamodb.get_waiter("contributor_insights_enabled").wait(TableName=table)
    updated = dynamodb.update_contributor_insights(
        TableName=table, IndexName="by-state", ContributorInsightsAction="ENABLE", ContributorInsightsMode="THROTTLED_KEYS",
    )
    assert updated["IndexName"] == "by-state"

    rules = dynamodb.describe_contributor_insights(TableName=table)["ContributorInsightsRuleList"]
    assert [rule.rsplit("-", 1)[0] for rule in rules] == [
        f"DynamoDBContributorInsights-{kind}-{table}" for kind in ("PKC", "SKC", "PKT", "SKT")
    ]
    index = dynamodb.describe_contributor_insights(TableName=table, IndexName="by-state")
    assert [rule.rsplit("-", 1)[0] for rule in index["ContributorInsightsRuleList"]] == [
        f"DynamoDBContributorInsights-PKT-{table}-by-state"
    ]
    assert index["LastUpdateDateTime"].tzinfo is not None

    first = dynamodb.list_contributor_insights(TableName=table, MaxResults=1)
    second = dynamodb.list_contributor_insights(TableName=table, MaxResults=1, NextToken=first["NextToken"])
    assert "NextToken" not in second
    assert summaries([first, second]) == [
        (table, None, "ENABLED", "ACCESSED_AND_THROTTLED_KEYS"), (table, "by-state", "ENABLED", "THROTTLED_KEYS"),
    ]

    updated = dynamodb.update_contributor_insights(TableName=table, ContributorInsightsAction="DISABLE")
    assert updated["ContributorInsightsStatus"] == "DISABLING"
    assert dynamodb.describe_contributor_insights(TableName=table)["ContributorInsightsStatus"] == "DISABLED"
    assert len(summaries([dynamodb.list_contributor_insights(TableName=table)])) == 1


def test_errors_have_their_types(dynamodb):
    table = create_table(dynamodb, keys="pk:S")
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException) as raised:
        dynamodb.describe_contributor_insights(TableName=table, IndexName="nothing")
    expected = f"Requested resource not found: Index: nothing not found for table: {table}"
    assert raised.value.response["Error"]["Message"] == expected
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        dynamodb.list_contributor_insights(TableName="no-such-table")


def test_insights_survive_a_restart_and_report_hot_keys(own_server):
    dynamodb = support.client(own_server.endpoint)
    table = create_table(dynamodb, keys="pk:S")
    dynamodb.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE")
    before = dynamodb.describe_contributor_insights(TableName=table)
    assert own_server.stop() == 0
    own_server.start()
    dynamodb = support.client(own_server.endpoint)
    after = dynamodb.describe_contributor_insights(TableName=table)
    for described in (before, after):
        del described["ResponseMetadata"]
    assert after == before

    for _ in range(3):
        put(dynamodb, table, pk="hot")
    put(dynamodb, table, pk="cold")
    with urllib.request.urlopen(f"{own_server.endpoint}/_zenobe/hot-keys/{table}") as answer:
        report = json.load(answer)["resources"][0]
    assert report["contributor_insights"] == "ACCESSED_AND_THROTTLED_KEYS"
    found = [(key["key"], key["accesses"]) for key in report["partition_keys"]["accessed"]]
    assert found == [({"pk": s("hot")}, 3), ({"pk": s("cold")}, 1)]
