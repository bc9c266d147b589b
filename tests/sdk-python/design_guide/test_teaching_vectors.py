"""The small examples with which data modelling is taught, literally."""

import hashlib

import pytest

from support import all_items, create_table, get, item, names_in, put, s

SHARDS = 10


def sharded_key(id_):
    """A key on the shard that the id's hash decides on."""
    shard = int(hashlib.md5(id_.encode()).hexdigest(), 16) % SHARDS
    return f"VOTES#{shard}"


def test_a_hash_decides_on_the_shard(dynamodb):
    assert [sharded_key(id_) for id_ in ("456", "789", "123")] == ["VOTES#4", "VOTES#3", "VOTES#8"]
    table = create_table(dynamodb, keys="pk:S,sk:S")
    ids = [str(number) for number in range(100, 130)]
    for id_ in ids:
        put(dynamodb, table, pk=sharded_key(id_), sk=id_)
    # One item is read by its id alone, and all of them by a Query per shard.
    assert get(dynamodb, table, pk="VOTES#8", sk="123") == item(pk="VOTES#8", sk="123")
    pages = [
        dynamodb.query(
            TableName=table, KeyConditionExpression="pk = :p",
            ExpressionAttributeValues={":p": s(f"VOTES#{shard}")},
        )
        for shard in range(SHARDS)
    ]
    assert sorted(id_ for page in pages for id_ in names_in(page["Items"], "sk")) == ids


def test_ten_segments_return_each_item_once(dynamodb):
    table = create_table(dynamodb, keys="pk:S")
    ids = [f"item{number:03}" for number in range(200)]
    for start in range(0, len(ids), 25):
        requests = [{"PutRequest": {"Item": item(pk=id_)}} for id_ in ids[start:start + 25]]
        dynamodb.batch_write_item(RequestItems={table: requests})
    found = [
        names_in(all_items(dynamodb.scan, TableName=table, TotalSegments=10, Segment=segment, Limit=7), "pk")
        for segment in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    ]
    assert all(found), "no segment of so many items is empty"
    assert sorted(id_ for segment in found for id_ in segment) == ids


@pytest.mark.parametrize("expected", ["v1 v10 v2", "#TEAM ISSUE ORG PR REPO STAR USER"])
def test_sort_keys_are_ordered_as_text(dynamodb, expected):
    table = create_table(dynamodb, keys="pk:S,sk:S")
    in_order = expected.split()
    for sort_key in reversed(in_order):
        put(dynamodb, table, pk="p", sk=sort_key)

    def keys(**more):
        page = dynamodb.query(
            TableName=table, KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": s("p")}, **more
        )
        return names_in(page["Items"], "sk")

    assert keys() == in_order
    assert keys(ScanIndexForward=False) == in_order[::-1]
