"""Odd but legal, and odd and refused."""

import pytest

from support import (
    P, all_items, create_table, get, index_definition, invalid, item, n, names_in, put, s, unique_name,
    wait_for_indexes,
)


def test_odd_indexes_are_legal(dynamodb):
    name = unique_name()
    create_table(
        dynamodb, name=name, keys="pk:S,sk:S",
        gsi=[("same-keys", "pk:S,sk:S"), (name, "sk:S,pk:S", ["pk", "other"])],
        lsi=[("same-sort", "pk:S,sk:S", "KEYS_ONLY")],
    )
    put(dynamodb, name, pk="a", sk="b", other="o", more="m")
    for index, expected in [
        ("same-keys", item(pk="a", sk="b", other="o", more="m")),
        (name, item(pk="a", sk="b", other="o")),
        ("same-sort", item(pk="a", sk="b")),
    ]:
        assert dynamodb.scan(TableName=name, IndexName=index)["Items"] == [expected]


def test_an_update_checks_only_the_index_keys_it_changes(dynamodb):
    table = create_table(dynamodb, keys="pk:S")
    put(dynamodb, table, pk="a", g=5)
    dynamodb.update_table(
        TableName=table, AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": index_definition("idx", "g:S")}],
    )
    wait_for_indexes(dynamodb, table, {"idx": "ACTIVE"})

    def update(expression, value):
        dynamodb.update_item(
            TableName=table, Key=item(pk="a"), UpdateExpression=expression, ExpressionAttributeValues={":v": value}
        )

    update("SET other1 = :v", s("x"))
    with invalid(P + "Type mismatch for Index Key g Expected: S Actual: N IndexName: idx"):
        update("SET g = :v", n(6))
    assert dynamodb.scan(TableName=table, IndexName="idx")["Count"] == 0
    update("SET g = :v", s("now text"))
    assert dynamodb.scan(TableName=table, IndexName="idx")["Count"] == 1


def test_long_index_keys(dynamodb):
    table = create_table(dynamodb, keys="pk:S", gsi=[("idx", "g:S,r:S")])
    put(dynamodb, table, pk="fits", g="x" * 2048, r="y" * 1024)
    with invalid(P + "Size of hashkey has exceeded the maximum size limit of2048 bytes"):
        put(dynamodb, table, pk="long", g="x" * 2049, r="y")
    with invalid(P + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"):
        put(dynamodb, table, pk="long", g="x", r="y" * 1025)
    assert names_in(dynamodb.scan(TableName=table, IndexName="idx")["Items"], "pk") == ["fits"]


def test_an_index_key_from_another_attribute(dynamodb):
    table = create_table(dynamodb, keys="pk:S", gsi=[("idx", "g:S")])
    put(dynamodb, table, pk="a", count1=1, word="w")

    def update(expression):
        dynamodb.update_item(TableName=table, Key=item(pk="a"), UpdateExpression=expression)

    update("SET g = word")
    assert names_in(dynamodb.scan(TableName=table, IndexName="idx")["Items"], "g") == ["w"]
    with invalid("The update expression attempted to update the secondary index key to unsupported type"):
        update("SET g = count1")
    assert get(dynamodb, table, pk="a")["g"] == s("w")


def test_start_keys_in_another_spelling(dynamodb, range_table, key):
    for number in (1, 10, 100):
        put(dynamodb, range_table, pk=key, sk=number)
    page = dynamodb.query(
        TableName=range_table, KeyConditionExpression="pk = :v", ExpressionAttributeValues={":v": s(key)},
        ExclusiveStartKey={"pk": s(key), "sk": n("1e1")},
    )
    assert names_in(page["Items"], "sk") == ["100"]


def test_bad_values_of_start_keys(dynamodb, range_table, key):
    def query(sort_key):
        dynamodb.query(
            TableName=range_table, KeyConditionExpression="pk = :v", ExpressionAttributeValues={":v": s(key)},
            ExclusiveStartKey={"pk": s(key), "sk": sort_key},
        )

    message = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
    with invalid("The provided starting key is invalid: " + message):
        query({})
    with invalid("The parameter cannot be converted to a numeric value: x"):
        query({"N": "x"})
    with invalid("The provided key element does not match the schema"):
        query(s("1"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"N": "abc"}, "The parameter cannot be converted to a numeric value: abc"),
        ({"SS": []}, P + "An string set  may not be empty"),
        ({"NS": ["1", "1"]}, "Input collection contains duplicates"),
    ],
)
def test_bad_bound_values(dynamodb, hash_table, value, message):
    with invalid(f"ExpressionAttributeValues contains invalid value: {message} for key :v"):
        dynamodb.delete_item(
            TableName=hash_table, Key=item(pk="x"), ConditionExpression="a = :v",
            ExpressionAttributeValues={":v": value},
        )


def test_a_transaction_of_too_many_bytes(dynamodb, hash_table, key):
    puts = [
        {"Put": {"TableName": hash_table, "Item": item(pk=f"{key}{number}", f="x" * 390_000)}} for number in range(11)
    ]
    with pytest.raises(dynamodb.exceptions.ClientError) as caught:
        dynamodb.transact_write_items(TransactItems=puts)
    error = caught.value.response["Error"]
    assert error["Code"] == "ValidationException"
    # The exact wording is not on record.
    assert "size cannot exceed" in error["Message"]
    assert get(dynamodb, hash_table, pk=f"{key}0") is None
    # Only the request counts: deleting as much is fine.
    for put_request in puts:
        dynamodb.put_item(**put_request["Put"])
    deletes = [{"Delete": {"TableName": hash_table, "Key": {"pk": entry["Put"]["Item"]["pk"]}}} for entry in puts]
    dynamodb.transact_write_items(TransactItems=deletes)
    assert get(dynamodb, hash_table, pk=f"{key}0") is None


def test_units_of_a_local_index_that_fetches(dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:N", lsi=[("local", "pk:S,l:N", "KEYS_ONLY")])
    for number in range(3):
        put(dynamodb, table, pk="p", sk=number, l=number, f="x" * 5000)
    answer = dynamodb.query(
        TableName=table, IndexName="local", KeyConditionExpression="pk = :v", ProjectionExpression="f",
        ExpressionAttributeValues={":v": s("p")}, ConsistentRead=True, ReturnConsumedCapacity="INDEXES",
    )
    # One unit for the entries together, two for each item fetched.
    assert answer["ConsumedCapacity"] == {
        "TableName": table,
        "CapacityUnits": 7.0,
        "Table": {"CapacityUnits": 6.0},
        "LocalSecondaryIndexes": {"local": {"CapacityUnits": 1.0}},
    }


def test_units_of_a_transaction_on_indexes(dynamodb):
    table = create_table(dynamodb, keys="pk:S", gsi=[("idx", "g:S", "KEYS_ONLY")])
    answer = dynamodb.transact_write_items(
        TransactItems=[{"Put": {"TableName": table, "Item": item(pk="a", g="x")}}], ReturnConsumedCapacity="INDEXES"
    )
    (consumed,) = answer["ConsumedCapacity"]
    # The table's part counts double, the index's does not.
    assert consumed["CapacityUnits"] == 3.0
    assert consumed["Table"]["CapacityUnits"] == 2.0
    assert consumed["GlobalSecondaryIndexes"]["idx"]["CapacityUnits"] == 1.0


def test_many_small_items_fill_a_page(dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:N")
    size = len("pk") + 1 + len("sk") + 2 + len("f") + 1000
    puts = [{"PutRequest": {"Item": item(pk="p", sk=number, f="x" * 1000)}} for number in range(1, 1301)]
    for start in range(0, len(puts), 25):
        dynamodb.batch_write_item(RequestItems={table: puts[start:start + 25]})
    page = dynamodb.query(
        TableName=table, KeyConditionExpression="pk = :v", ExpressionAttributeValues={":v": s("p")}
    )
    # About a megabyte, the last item included; AWS's own overhead per item is unknown.
    assert abs(page["Count"] * size - 1_048_576) < 0.05 * 1_048_576
    items = all_items(
        dynamodb.query, TableName=table, KeyConditionExpression="pk = :v", ExpressionAttributeValues={":v": s("p")}
    )
    assert [int(entry["sk"]["N"]) for entry in items] == list(range(1, 1301))


def test_unknown_condition_failure_setting(dynamodb, hash_table):
    message = (
        "1 validation error detected: Value 'SOME' at 'returnValuesOnConditionCheckFailure' failed to satisfy "
        "constraint: Member must satisfy enum value set: [ALL_OLD, NONE]"
    )
    with invalid(message):
        dynamodb.put_item(
            TableName=hash_table, Item=item(pk="x"), ReturnValuesOnConditionCheckFailure="SOME",
        )


def test_conditions_of_updates_see_the_old_item(dynamodb, hash_table, key):
    put(dynamodb, hash_table, pk=key, a=1, b=2)
    answer = dynamodb.update_item(
        TableName=hash_table, Key=item(pk=key), UpdateExpression="SET a = b, b = a, c = a REMOVE d",
        ConditionExpression="a < b AND attribute_not_exists(c)", ReturnValues="ALL_NEW",
    )
    assert answer["Attributes"] == item(pk=key, a=2, b=1, c=1)


@pytest.mark.parametrize(("number", "stored"), [("0.0e126", "0"), ("0e126", None)])
def test_zeros_with_an_exponent(dynamodb, hash_table, key, number, stored):
    attributes = item(pk=key) | {"v": n(number)}
    if stored is None:
        message = "Number overflow. Attempting to store a number with magnitude larger than supported range"
        with invalid(message):
            dynamodb.put_item(TableName=hash_table, Item=attributes)
    else:
        dynamodb.put_item(TableName=hash_table, Item=attributes)
        assert get(dynamodb, hash_table, pk=key)["v"] == n(stored)


def test_size_counts_utf_16_units(dynamodb, hash_table, key):
    put(dynamodb, hash_table, pk=key, word="é\U0001f600")
    dynamodb.delete_item(
        TableName=hash_table, Key=item(pk=key), ConditionExpression="size(word) = :three",
        ExpressionAttributeValues={":three": n(3)},
    )
    assert get(dynamodb, hash_table, pk=key) is None


def test_transactions_compare_keys_by_value(dynamodb, range_table, key):
    deletes = [
        {"Delete": {"TableName": range_table, "Key": {"pk": s(key), "sk": n(spelling)}}} for spelling in ("1", "1.0")
    ]
    with invalid("Transaction request cannot include multiple operations on one item"):
        dynamodb.transact_write_items(TransactItems=deletes)


def test_paths_below_index_keys(dynamodb):
    table = create_table(dynamodb, keys="pk:S", gsi=[("idx", "g:S"), ("other", "h:S")])

    def query(path):
        dynamodb.query(
            TableName=table, IndexName="idx", KeyConditionExpression="g = :v", FilterExpression=f"{path} = :v",
            ExpressionAttributeValues={":v": s("x")},
        )

    with invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: g"):
        query("g.a")
    message = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: IndexKey: h"
    with invalid(message):
        query("h.a")


def multi_key_table(dynamodb):
    name = unique_name()
    kinds = {"a": "HASH", "b": "HASH", "c": "RANGE", "d": "RANGE"}
    dynamodb.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": a, "AttributeType": "S"} for a in ("pk", *kinds)],
        GlobalSecondaryIndexes=[{
            "IndexName": "multi", "Projection": {"ProjectionType": "ALL"},
            "KeySchema": [{"AttributeName": a, "KeyType": kind} for a, kind in kinds.items()],
        }],
    )
    return name


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a = :x AND b = :x", ["xx", "xy", "yx", "yy"]),
        ("b = :x AND a = :x AND c = :x", ["xx", "xy"]),
        ("d = :y AND c = :x AND a = :x AND b = :x", ["xy"]),
        ("a = :x AND b = :x AND c > :x", ["yx", "yy"]),
        ("a = :x AND b = :x AND c = :y AND d >= :y", ["yy"]),
        ("a = :x AND b = :y", []),
    ],
)
def test_conditions_on_several_key_attributes(dynamodb, condition, expected):
    table = multi_key_table(dynamodb)
    for c in "yx":
        for d in "yx":
            put(dynamodb, table, pk=c + d, a="x", b="x", c=c, d=d)
    values = {f":{letter}": s(letter) for letter in "xy" if f":{letter}" in condition}
    page = dynamodb.query(
        TableName=table, IndexName="multi", KeyConditionExpression=condition, ExpressionAttributeValues=values
    )
    assert names_in(page["Items"], "pk") == expected


def test_pages_of_an_index_with_several_key_attributes(dynamodb):
    table = multi_key_table(dynamodb)
    for number in range(10):
        put(dynamodb, table, pk=f"p{number}", a="x", b="x", c="c", d=f"d{number % 3}")
    request = {
        "TableName": table, "IndexName": "multi", "KeyConditionExpression": "a = :x AND b = :x",
        "ExpressionAttributeValues": {":x": s("x")}, "Limit": 3,
    }
    first = dynamodb.query(**request)
    assert first["LastEvaluatedKey"].keys() == {"pk", "a", "b", "c", "d"}
    items = all_items(dynamodb.query, **request)
    assert sorted(names_in(items, "pk")) == [f"p{number}" for number in range(10)]
    assert names_in(items, "d") == sorted(names_in(items, "d"))
    scanned = all_items(dynamodb.scan, TableName=table, IndexName="multi", Limit=4)
    assert sorted(names_in(scanned, "pk")) == [f"p{number}" for number in range(10)]


@pytest.mark.parametrize("operation", ["describe_table", "delete_table"])
def test_short_names_of_tables(dynamodb, operation):
    message = "Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3"
    with invalid("1 validation error detected: " + message):
        getattr(dynamodb, operation)(TableName="ab")
