"""A hierarchy in the sort key: each prefix is a level."""

import pytest

from support import create_table, names_in, put, s

PLACES = ["BE#BRU#1000", "BE#BRU#1050", "BE#LIE#4000", "BE-X#A#1", "FR#IDF#75001", "FR#IDF#75002"]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("BE#", PLACES[:3]),
        ("BE#BRU#", PLACES[:2]),
        ("BE#LIE#4000", PLACES[2:3]),
        ("FR", PLACES[4:]),
        ("NL#", []),
    ],
)
def test_a_prefix_is_a_level(dynamodb, prefix, expected):
    table = create_table(dynamodb, keys="chain:S,place:S")
    for place in PLACES:
        put(dynamodb, table, chain="stores", place=place)
    page = dynamodb.query(
        TableName=table, KeyConditionExpression="chain = :c AND begins_with(place, :p)",
        ExpressionAttributeValues={":c": s("stores"), ":p": s(prefix)},
    )
    assert names_in(page["Items"], "place") == expected
