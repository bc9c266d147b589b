"""BatchGetItem and BatchWriteItem."""

import pytest

from support import all_items, create_table, get, invalid, item, missing_resource, n, names_in, put, s

DUPLICATES = "Provided list of item keys contains duplicates"
SCHEMA = "The provided key element does not match the schema"


def puts(*items):
    return [{"PutRequest": {"Item": entry}} for entry in items]


def deletes(*keys):
    return [{"DeleteRequest": {"Key": key}} for key in keys]


def test_write_and_get_over_tables(dynamodb, hash_table, range_table, key):
    put(dynamodb, hash_table, pk=key + "old")
    answer = dynamodb.batch_write_item(RequestItems={
        hash_table: puts(item(pk=key, a=1)) + deletes(item(pk=key + "old"), item(pk=key + "never")),
        range_table: puts(item(pk=key, sk=1), item(pk=key, sk=2)),
    })
    assert answer["UnprocessedItems"] == {}
    answer = dynamodb.batch_get_item(RequestItems={
        hash_table: {"Keys": [item(pk=key), item(pk=key + "old")]},
        range_table: {"Keys": [item(pk=key, sk=number) for number in (2, 1, 3)], "ConsistentRead": True},
    })
    assert answer["UnprocessedKeys"] == {}
    assert answer["Responses"][hash_table] == [item(pk=key, a=1)]
    assert sorted(names_in(answer["Responses"][range_table], "sk")) == ["1", "2"]


def test_every_table_has_an_entry(dynamodb, hash_table, key):
    answer = dynamodb.batch_get_item(RequestItems={hash_table: {"Keys": [item(pk=key)]}})
    assert answer["Responses"] == {hash_table: []}


def test_projection(dynamodb, hash_table, key):
    put(dynamodb, hash_table, pk=key, name="n", a={"b": 1, "c": 2})
    answer = dynamodb.batch_get_item(RequestItems={hash_table: {
        "Keys": [item(pk=key)], "ProjectionExpression": "#n, a.b", "ExpressionAttributeNames": {"#n": "name"},
    }})
    assert answer["Responses"][hash_table] == [item(name="n", a={"b": 1})]


def test_the_largest_batches(dynamodb, key):
    table = create_table(dynamodb, keys="pk:S,sk:N")
    for start in range(0, 100, 25):
        dynamodb.batch_write_item(RequestItems={
            table: puts(*(item(pk=key, sk=number) for number in range(start, start + 25)))
        })
    keys = [item(pk=key, sk=number) for number in range(100)]
    answer = dynamodb.batch_get_item(RequestItems={table: {"Keys": keys}})
    assert len(answer["Responses"][table]) == 100
    assert len(all_items(dynamodb.scan, TableName=table)) == 100


def test_a_large_reply_is_cut_and_continued(dynamodb):
    table = create_table(dynamodb, keys="pk:S")
    for number in range(50):
        put(dynamodb, table, pk=f"p{number}", filler="x" * 390_000)
    wanted = {table: {"Keys": [item(pk=f"p{number}") for number in range(50)], "ConsistentRead": True}}
    found, calls = [], 0
    while wanted:
        answer = dynamodb.batch_get_item(RequestItems=wanted)
        assert answer["Responses"][table]
        found += names_in(answer["Responses"][table], "pk")
        wanted = answer["UnprocessedKeys"]
        calls += 1
        if wanted:
            assert wanted[table]["ConsistentRead"] is True
    assert sorted(found) == sorted(f"p{number}" for number in range(50))
    assert calls > 1


WRITE_REFUSALS = {
    "nothing": ({}, "The requestItems parameter is required for BatchWriteItem"),
    "two puts of one key": (puts(item(pk="a", x=1), item(pk="a", x=2)), DUPLICATES),
    "put and delete of one key": (puts(item(pk="a")) + deletes(item(pk="a")), DUPLICATES),
    "delete by another key": (deletes(item(sk="a")), SCHEMA),
    "mistyped key": (puts(item(pk=1)), SCHEMA),
    "neither put nor delete": (
        [{}],
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
    ),
    "a bad value": (
        puts({"pk": s("a"), "v": {"N": "x"}}), "The parameter cannot be converted to a numeric value: x",
    ),
    "an oversize item": (
        puts(item(pk="a", v="x" * 409_600)), "Item size has exceeded the maximum allowed size",
    ),
}


@pytest.mark.parametrize("case", WRITE_REFUSALS)
def test_refused_writes_write_nothing(dynamodb, hash_table, key, case):
    requests, message = WRITE_REFUSALS[case]
    batch = {hash_table: puts(item(pk=key)) + requests} if requests else {}
    with invalid(message):
        dynamodb.batch_write_item(RequestItems=batch)
    assert get(dynamodb, hash_table, pk=key) is None


def test_numeric_keys_are_compared_by_value(dynamodb, range_table, key):
    with invalid(DUPLICATES):
        dynamodb.batch_write_item(RequestItems={
            range_table: puts({"pk": s(key), "sk": n("1")}, {"pk": s(key), "sk": n("1.0")})
        })


def test_twenty_six_writes(dynamodb, hash_table):
    requests = puts(*(item(pk=str(number)) for number in range(26)))
    with pytest.raises(dynamodb.exceptions.ClientError) as caught:
        dynamodb.batch_write_item(RequestItems={hash_table: requests})
    error = caught.value.response["Error"]
    assert error["Code"] == "ValidationException"
    assert error["Message"].endswith(
        "at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: "
        "[Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"
    )


GET_REFUSALS = {
    "nothing": ({}, "The requestItems parameter is required for BatchGetItem"),
    "one key twice": ({"Keys": [item(pk="a"), item(pk="a")]}, DUPLICATES),
    "another key": ({"Keys": [item(sk="a")]}, SCHEMA),
    "mixed parameters": (
        {"Keys": [item(pk="a")], "AttributesToGet": ["a"], "ProjectionExpression": "a"},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}",
    ),
}


@pytest.mark.parametrize("case", GET_REFUSALS)
def test_refused_reads(dynamodb, hash_table, case):
    request, message = GET_REFUSALS[case]
    with invalid(message):
        dynamodb.batch_get_item(RequestItems={hash_table: request} if request else {})


def test_a_hundred_and_one_keys(dynamodb, hash_table, range_table):
    keys = [item(pk=str(number)) for number in range(101)]
    message = (
        f"1 validation error detected: Value at 'RequestItems.{hash_table}.member.Keys' failed to satisfy constraint: "
        "Member must have length less than or equal to 100"
    )
    with invalid(message):
        dynamodb.batch_get_item(RequestItems={hash_table: {"Keys": keys}})
    with invalid("Too many items requested for the BatchGetItem call"):
        dynamodb.batch_get_item(RequestItems={
            hash_table: {"Keys": keys[:60]},
            range_table: {"Keys": [item(pk="a", sk=number) for number in range(60)]},
        })


def test_missing_tables(dynamodb, hash_table, key):
    with missing_resource():
        dynamodb.batch_get_item(RequestItems={"missing": {"Keys": [item(pk="a")]}})
    with missing_resource():
        dynamodb.batch_write_item(RequestItems={hash_table: puts(item(pk=key)), "missing": puts(item(pk="a"))})
    assert get(dynamodb, hash_table, pk=key) is None
