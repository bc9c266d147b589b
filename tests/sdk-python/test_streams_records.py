"""What a stream says of a change: when there is a record, and what is in it."""

import datetime
import itertools

import pytest

import streams as streaming
from support import create_table, item, n, put, s

IMAGES = {
    "KEYS_ONLY": (False, False),
    "NEW_IMAGE": (True, False),
    "OLD_IMAGE": (False, True),
    "NEW_AND_OLD_IMAGES": (True, True),
}


@pytest.mark.parametrize("view_type", streaming.VIEW_TYPES)
def test_a_view_type_decides_which_images_there_are(dynamodb, streams, view_type):
    table, arn = streaming.create_table(dynamodb, view_type, keys="pk:S,sk:N")
    key = item(pk="a", sk=1)
    first = key | {"v": n(1), "blob": {"B": b"\0\xff"}, "tags": {"SS": ["x"]}, "deep": {"L": [{"M": {}}, n("1.5")]}}
    second = key | {"v": n(2)}
    dynamodb.put_item(TableName=table, Item=first)
    dynamodb.put_item(TableName=table, Item=second)
    dynamodb.delete_item(TableName=table, Key=key)

    has_new, has_old = IMAGES[view_type]
    new = lambda image: image if has_new else None
    old = lambda image: image if has_old else None
    assert streaming.changes(streams, arn) == [
        ("INSERT", key, new(first), None),
        ("MODIFY", key, new(second), old(first)),
        ("REMOVE", key, None, old(second)),
    ]


@pytest.mark.parametrize("view_type", streaming.VIEW_TYPES)
def test_the_size_of_a_record_is_that_of_its_keys_and_images(dynamodb, streams, view_type):
    table, arn = streaming.create_table(dynamodb, view_type)
    put(dynamodb, table, pk="a", v=1)
    put(dynamodb, table, pk="a", v="ten bytes!")
    has_new, has_old = IMAGES[view_type]
    keys_size, first_size, second_size = 3, 3 + 1 + 2, 3 + 1 + 10
    sizes = [record["dynamodb"]["SizeBytes"] for record in streaming.records(streams, arn)]
    assert sizes == [
        keys_size + has_new * first_size,
        keys_size + has_new * second_size + has_old * first_size,
    ]


def test_the_fields_around_the_images(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb, "NEW_IMAGE")
    before = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    for number in range(3):
        put(dynamodb, table, pk="a", v=number)
    after = datetime.datetime.now(datetime.timezone.utc)
    found = streaming.records(streams, arn)
    for record in found:
        assert set(record) == {"eventID", "eventName", "eventVersion", "eventSource", "awsRegion", "dynamodb"}
        assert len(record["eventID"]) == 32 and int(record["eventID"], 16) >= 0
        assert (record["eventVersion"], record["eventSource"]) == ("1.1", "aws:dynamodb")
        assert record["awsRegion"] == "us-east-1"
        body = record["dynamodb"]
        assert before <= body["ApproximateCreationDateTime"] <= after
        assert body["ApproximateCreationDateTime"].microsecond == 0
        assert body["StreamViewType"] == "NEW_IMAGE"
        assert 21 <= len(body["SequenceNumber"]) <= 40
    numbers = [streaming.sequence_number(record) for record in found]
    assert numbers == sorted(set(numbers))
    assert len({record["eventID"] for record in found}) == 3
    # A record is the same each time it is read.
    assert streaming.records(streams, arn) == found


def set_v(value, expression="SET v = :v"):
    return {"UpdateExpression": expression, "ExpressionAttributeValues": {":v": value}}


PRESENT = item(pk="here", v=1, m={"a": 1, "b": 2}, text="t") | {"set": {"NS": ["2", "1"]}}

NOTHING_CHANGES = {
    "the same item": lambda db, t: db.put_item(TableName=t, Item=PRESENT),
    "the same number, written differently": lambda db, t: db.put_item(TableName=t, Item=PRESENT | {"v": n("1.00")}),
    "sets and maps in another order": lambda db, t: db.put_item(
        TableName=t, Item=PRESENT | {"set": {"NS": ["1", "2"]}, "m": {"M": item(b=2, a=1)}}
    ),
    "an update to the same value": lambda db, t: db.update_item(TableName=t, Key=item(pk="here"), **set_v(n(1))),
    "nothing added": lambda db, t: db.update_item(TableName=t, Key=item(pk="here"), **set_v(n(0), "ADD v :v")),
    "a missing element deleted": lambda db, t: db.update_item(
        TableName=t, Key=item(pk="here"), **set_v({"NS": ["7"]}, "DELETE #s :v"), ExpressionAttributeNames={"#s": "set"}
    ),
    "a missing attribute removed": lambda db, t: db.update_item(
        TableName=t, Key=item(pk="here"), UpdateExpression="REMOVE nowhere"
    ),
    "a missing item deleted": lambda db, t: db.delete_item(TableName=t, Key=item(pk="absent")),
    "a failed condition": lambda db, t: pytest.raises(
        db.exceptions.ConditionalCheckFailedException, db.put_item, TableName=t, Item=item(pk="here", v=9),
        ConditionExpression="attribute_not_exists(pk)",
    ),
    "the same item in a batch": lambda db, t: db.batch_write_item(
        RequestItems={t: [{"PutRequest": {"Item": PRESENT}}, {"DeleteRequest": {"Key": item(pk="absent")}}]}
    ),
    "a condition check in a transaction": lambda db, t: db.transact_write_items(TransactItems=[
        {"ConditionCheck": {"TableName": t, "Key": item(pk="no"), "ConditionExpression": "attribute_not_exists(pk)"}},
        {"Put": {"TableName": t, "Item": PRESENT}},
    ]),
    "a cancelled transaction": lambda db, t: pytest.raises(
        db.exceptions.TransactionCanceledException, db.transact_write_items, TransactItems=[
            {"Put": {"TableName": t, "Item": item(pk="new")}},
            {"Delete": {"TableName": t, "Key": item(pk="here"), "ConditionExpression": "attribute_not_exists(pk)"}},
        ],
    ),
    "reads": lambda db, t: (db.get_item(TableName=t, Key=item(pk="here")), db.scan(TableName=t)),
}


@pytest.mark.parametrize("case", NOTHING_CHANGES)
def test_a_write_that_changes_nothing_leaves_no_record(dynamodb, streams, case):
    table, arn = streaming.create_table(dynamodb)
    dynamodb.put_item(TableName=table, Item=PRESENT)
    NOTHING_CHANGES[case](dynamodb, table)
    put(dynamodb, table, pk="last")
    names = sorted((change[0], change[1]["pk"]["S"]) for change in streaming.changes(streams, arn))
    assert names == [("INSERT", "here"), ("INSERT", "last")]


EVENTS = {
    "put, new": ("absent", "INSERT", lambda db, t, k: db.put_item(TableName=t, Item=k | {"v": n(5)})),
    "put, replacing": ("here", "MODIFY", lambda db, t, k: db.put_item(TableName=t, Item=k)),
    "update, creating": ("absent", "INSERT", lambda db, t, k: db.update_item(TableName=t, Key=k, **set_v(n(5)))),
    "update, creating only keys": ("absent", "INSERT", lambda db, t, k: db.update_item(TableName=t, Key=k)),
    "update": ("here", "MODIFY", lambda db, t, k: db.update_item(TableName=t, Key=k, **set_v(n(5)))),
    "another type": ("here", "MODIFY", lambda db, t, k: db.update_item(TableName=t, Key=k, **set_v(s("1")))),
    "remove": ("here", "MODIFY", lambda db, t, k: db.update_item(TableName=t, Key=k, UpdateExpression="REMOVE v")),
    "delete": ("here", "REMOVE", lambda db, t, k: db.delete_item(TableName=t, Key=k)),
}


@pytest.mark.parametrize("case", EVENTS)
def test_the_name_of_the_event(dynamodb, streams, case):
    pk, event, write = EVENTS[case]
    table, arn = streaming.create_table(dynamodb)
    dynamodb.put_item(TableName=table, Item=PRESENT)
    write(dynamodb, table, item(pk=pk))
    stored = dynamodb.get_item(TableName=table, Key=item(pk=pk), ConsistentRead=True).get("Item")
    old = PRESENT if pk == "here" else None
    assert (event, item(pk=pk), stored, old) in streaming.changes(streams, arn)
    assert len(streaming.changes(streams, arn)) == 2


def test_batches_and_transactions_have_a_record_per_item(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb)
    other, other_arn = streaming.create_table(dynamodb)
    put(dynamodb, table, pk="old", v=1)
    put(dynamodb, table, pk="gone", v=1)
    puts = [{"PutRequest": {"Item": item(pk=f"b{number}")}} for number in range(10)]
    deletes = [{"DeleteRequest": {"Key": item(pk="gone")}}]
    dynamodb.batch_write_item(RequestItems={table: puts + deletes, other: [{"PutRequest": {"Item": item(pk="o")}}]})
    transaction = {"ClientRequestToken": "stream-records-once", "TransactItems": [
        {"Put": {"TableName": table, "Item": item(pk="t1")}},
        {"Update": {"TableName": table, "Key": item(pk="old"), **set_v(n(2))}},
        {"Delete": {"TableName": table, "Key": item(pk="b0")}},
        {"Put": {"TableName": other, "Item": item(pk="t2")}},
    ]}
    dynamodb.transact_write_items(**transaction)
    # A repeated token changes nothing, and so records nothing.
    dynamodb.transact_write_items(**transaction)

    inserted = [("INSERT", item(pk=pk), item(pk=pk), None) for pk in ["t1", *(f"b{number}" for number in range(10))]]
    expected = inserted + [
        ("INSERT", item(pk="old"), item(pk="old", v=1), None),
        ("INSERT", item(pk="gone"), item(pk="gone", v=1), None),
        ("REMOVE", item(pk="gone"), None, item(pk="gone", v=1)),
        ("MODIFY", item(pk="old"), item(pk="old", v=2), item(pk="old", v=1)),
        ("REMOVE", item(pk="b0"), None, item(pk="b0")),
    ]
    assert sorted(map(repr, streaming.changes(streams, arn))) == sorted(map(repr, expected))
    assert sorted(change[1]["pk"]["S"] for change in streaming.changes(streams, other_arn)) == ["o", "t2"]


def test_indexes_add_no_records(dynamodb, streams):
    indexes = {"gsi": [("global", "g:S")], "lsi": [("local", "pk:S,l:S")]}
    table, arn = streaming.create_table(dynamodb, keys="pk:S,sk:S", **indexes)
    for group in ("one", "two"):
        put(dynamodb, table, pk="a", sk="s", g=group, l=group)
    dynamodb.delete_item(TableName=table, Key=item(pk="a", sk="s"))
    assert [change[0] for change in streaming.changes(streams, arn)] == ["INSERT", "MODIFY", "REMOVE"]


def test_only_changes_after_enabling_appear(dynamodb, streams):
    table = create_table(dynamodb)
    put(dynamodb, table, pk="before", v=1)
    dynamodb.update_table(TableName=table, StreamSpecification=streaming.specification("OLD_IMAGE"))
    put(dynamodb, table, pk="before", v=2)
    arn = streaming.latest_arn(dynamodb, table)
    assert streaming.changes(streams, arn) == [("MODIFY", item(pk="before"), None, item(pk="before", v=1))]


def test_the_records_of_an_item_are_in_order_and_in_one_lineage(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb, keys="pk:S,sk:N")
    for version, pk, sk in itertools.product(range(8), "abcdef", range(3)):
        put(dynamodb, table, pk=pk, sk=sk, version=version)
    home = {}
    versions = {}
    for shard in streaming.shards(streams, arn):
        for record in streaming.read_shard(streams, arn, shard["ShardId"]):
            _, keys, new, _ = streaming.change(record)
            assert home.setdefault(keys["pk"]["S"], shard["ShardId"]) == shard["ShardId"]
            versions.setdefault(repr(keys), []).append(int(new["version"]["N"]))
    assert list(versions.values()) == [list(range(8))] * 18
    assert len(set(home.values())) > 1, "six partitions share one shard"


def test_large_items_arrive_whole(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb)
    small, large = "x" * 10, "y" * 400_000
    for text in (small, large, small, large):
        put(dynamodb, table, pk="a", text=text)
    texts = [change[2]["text"]["S"] for change in streaming.changes(streams, arn)]
    assert texts == [small, large, small, large]
