"""Scan: everything once, in pages and in segments."""

import pytest

from support import all_items, create_table, invalid, item, missing_resource, n, names_in, s

COUNT = 200


@pytest.fixture(scope="module")
def table(dynamodb):
    name = create_table(dynamodb, keys="pk:S,sk:N")
    requests = [{"PutRequest": {"Item": item(pk=f"p{i // 4}", sk=i, parity=i % 2)}} for i in range(COUNT)]
    for start in range(0, COUNT, 25):
        dynamodb.batch_write_item(RequestItems={name: requests[start:start + 25]})
    return name


def sort_keys(items):
    return sorted(int(entry["sk"]["N"]) for entry in items)


@pytest.mark.parametrize("limit", [1, 7, 100, 200, 1000])
def test_paging_visits_each_item_once(dynamodb, table, limit):
    if limit == 1:
        # A page per item is slow to no end; a few of them show that the key advances.
        first = dynamodb.scan(TableName=table, Limit=1)
        second = dynamodb.scan(TableName=table, Limit=1, ExclusiveStartKey=first["LastEvaluatedKey"])
        assert first["Items"] != second["Items"]
        return
    assert sort_keys(all_items(dynamodb.scan, TableName=table, Limit=limit)) == list(range(COUNT))


def test_items_of_a_partition_stay_together_in_order(dynamodb, table):
    items = all_items(dynamodb.scan, TableName=table)
    partitions = names_in(items, "pk")
    changes = sum(left != right for left, right in zip(partitions, partitions[1:]))
    assert changes == COUNT // 4 - 1
    for start in range(0, COUNT, 4):
        keys = [int(entry["sk"]["N"]) for entry in items[start:start + 4]]
        assert keys == sorted(keys)


@pytest.mark.parametrize("segments", [1, 2, 3, 16])
@pytest.mark.parametrize("limit", [None, 9])
def test_segments_share_the_table(dynamodb, table, segments, limit):
    more = {"Limit": limit} if limit else {}
    parts = [
        all_items(dynamodb.scan, TableName=table, TotalSegments=segments, Segment=segment, **more)
        for segment in range(segments)
    ]
    assert sort_keys(entry for part in parts for entry in part) == list(range(COUNT))
    partitions = [set(names_in(part, "pk")) for part in parts]
    assert sum(len(part) for part in partitions) == COUNT // 4


def test_filter_and_count(dynamodb, table):
    page = dynamodb.scan(
        TableName=table, FilterExpression="parity = :one AND begins_with(pk, :p)", Select="COUNT",
        ExpressionAttributeValues={":one": n(1), ":p": s("p1")},
    )
    assert "Items" not in page
    # p1 and p10 to p19, two odd ones in each
    assert (page["Count"], page["ScannedCount"]) == (22, COUNT)


def test_a_filtered_page_may_be_empty(dynamodb, table):
    page = dynamodb.scan(
        TableName=table, Limit=5, FilterExpression="parity = :v", ExpressionAttributeValues={":v": n(9)}
    )
    assert (page["Count"], page["ScannedCount"], page["Items"]) == (0, 5, [])
    assert page["LastEvaluatedKey"].keys() == {"pk", "sk"}


def test_projection(dynamodb, table):
    page = dynamodb.scan(TableName=table, Limit=1, ProjectionExpression="parity")
    assert page["Items"][0].keys() == {"parity"}


REFUSALS = {
    "no total": (
        {"Segment": 0},
        "The TotalSegments parameter is required but was not present in the request when Segment parameter is present",
    ),
    "no segment": (
        {"TotalSegments": 2},
        "The Segment parameter is required but was not present in the request when parameter TotalSegments is present",
    ),
    "segment too high": (
        {"Segment": 5, "TotalSegments": 5},
        "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
        "Segment: 5 is not less than TotalSegments: 5",
    ),
    "negative segment": (
        {"Segment": -1, "TotalSegments": 5},
        "1 validation error detected: Value '-1' at 'segment' failed to satisfy constraint: "
        "Member must have value greater than or equal to 0",
    ),
    "too many segments": (
        {"Segment": 0, "TotalSegments": 1000001},
        "1 validation error detected: Value '1000001' at 'totalSegments' failed to satisfy constraint: "
        "Member must have value less than or equal to 1000000",
    ),
    "no limit": (
        {"Limit": 0},
        "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: "
        "Member must have value greater than or equal to 1",
    ),
    "no projection": (
        {"Select": "SPECIFIC_ATTRIBUTES"},
        "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
    ),
    "projected attributes of a table": (
        {"Select": "ALL_PROJECTED_ATTRIBUTES"},
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    ),
    "values without filter": (
        {"ExpressionAttributeValues": {":v": n(1)}},
        "ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null",
    ),
    "unknown index": ({"IndexName": "nope"}, "The table does not have the specified index: nope"),
    "start key of another shape": (
        {"ExclusiveStartKey": item(pk="p")},
        "The provided starting key is invalid: The provided key element does not match the schema",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal(dynamodb, table, case):
    request, message = REFUSALS[case]
    with invalid(message):
        dynamodb.scan(TableName=table, **request)


def test_a_start_key_belongs_to_its_segment(dynamodb, table):
    parts = [dynamodb.scan(TableName=table, TotalSegments=2, Segment=segment, Limit=1) for segment in (0, 1)]
    message = (
        "The provided starting key is invalid: Invalid ExclusiveStartKey. "
        "Please use ExclusiveStartKey with correct Segment. TotalSegments: 2 Segment: 0"
    )
    with invalid(message):
        dynamodb.scan(
            TableName=table, TotalSegments=2, Segment=0, ExclusiveStartKey=parts[1]["LastEvaluatedKey"]
        )


def test_a_missing_table(dynamodb):
    with missing_resource():
        dynamodb.scan(TableName="missing")
