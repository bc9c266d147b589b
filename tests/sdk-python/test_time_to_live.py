"""Items that expire, under a clock that the test moves."""

import pytest

import streams as streaming
from support import all_items, create_table, get, invalid, item, n, names_in, put, s

DAY_S = 24 * 60 * 60
FIVE_YEARS_S = 5 * 365 * DAY_S
SERVICE = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}


def switch(dynamodb, table, on, attribute="expires"):
    setting = {"Enabled": on, "AttributeName": attribute}
    dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=setting)


def expiring_table(driven, **short_form):
    table = create_table(driven.dynamodb, **short_form)
    switch(driven.dynamodb, table, True)
    return table


def keys_in(driven, table, **index):
    return sorted(names_in(all_items(driven.dynamodb.scan, TableName=table, **index), "pk"))


def test_items_go_when_their_time_has_passed(driven):
    table = expiring_table(driven)
    now = driven.clock.now_s()
    for delay in (10, 20, 30):
        put(driven.dynamodb, table, pk=f"in {delay}", expires=now + delay)
    put(driven.dynamodb, table, pk="forever")
    assert keys_in(driven, table) == ["forever", "in 10", "in 20", "in 30"]
    driven.clock.advance(seconds=11)
    assert keys_in(driven, table) == ["forever", "in 20", "in 30"]
    driven.clock.advance(seconds=10)
    assert keys_in(driven, table) == ["forever", "in 30"]
    driven.clock.advance(hours=1)
    assert keys_in(driven, table) == ["forever"]
    assert driven.dynamodb.describe_table(TableName=table)["Table"]["ItemCount"] == 1


def test_an_item_is_there_in_the_second_it_names(driven):
    table = expiring_table(driven)
    second = driven.clock.now_s() + 5
    put(driven.dynamodb, table, pk="a", expires=second)
    driven.clock.post({"set_ms": second * 1000 + 999})
    assert get(driven.dynamodb, table, pk="a") is not None
    driven.clock.post({"set_ms": (second + 1) * 1000})
    assert get(driven.dynamodb, table, pk="a") is None


def test_expiry_is_recorded_as_the_services_own(driven):
    table, arn = streaming.create_table(driven.dynamodb, keys="pk:S,sk:N")
    switch(driven.dynamodb, table, True)
    expires = driven.clock.now_s() + 5
    doomed = item(pk="a", sk=1, expires=expires, text="old")
    driven.dynamodb.put_item(TableName=table, Item=doomed)
    put(driven.dynamodb, table, pk="a", sk=2, text="deleted by its owner")
    driven.dynamodb.delete_item(TableName=table, Key=item(pk="a", sk=2))
    driven.clock.advance(seconds=6)
    records = streaming.records(driven.streams, arn)
    assert [record["eventName"] for record in records] == ["INSERT", "INSERT", "REMOVE", "REMOVE"]
    assert [record.get("userIdentity") for record in records] == [None, None, None, SERVICE]
    assert streaming.change(records[-1]) == ("REMOVE", item(pk="a", sk=1), None, doomed)
    assert records[-1]["dynamodb"]["ApproximateCreationDateTime"].timestamp() == driven.clock.now_s()


def later(expires):
    return {"UpdateExpression": "SET expires = :e", "ExpressionAttributeValues": {":e": n(expires)}}


CHANGES = {
    "put back": lambda db, t, key, now: db.put_item(TableName=t, Item=key | {"expires": n(now + 999)}),
    "updated": lambda db, t, key, now: db.update_item(TableName=t, Key=key, **later(now + 999)),
    "no longer": lambda db, t, key, now: db.update_item(TableName=t, Key=key, UpdateExpression="REMOVE expires"),
    "another type": lambda db, t, key, now: db.put_item(TableName=t, Item=key | {"expires": s(str(now))}),
    "replaced": lambda db, t, key, now: (
        db.delete_item(TableName=t, Key=key), db.put_item(TableName=t, Item=key)
    ),
    "in a transaction": lambda db, t, key, now: db.transact_write_items(
        TransactItems=[{"Update": {"TableName": t, "Key": key, **later(now + 999)}}]
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_an_item_that_was_changed_survives(driven, case):
    table = expiring_table(driven)
    now = driven.clock.now_s()
    for pk in ("changed", "unchanged"):
        put(driven.dynamodb, table, pk=pk, expires=now + 5)
    CHANGES[case](driven.dynamodb, table, item(pk="changed"), now)
    driven.clock.advance(seconds=60)
    assert keys_in(driven, table) == ["changed"]


def test_what_counts_as_a_time(driven):
    table = expiring_table(driven)
    now = driven.clock.now_s()
    soon = now + 5
    expire = {
        "whole": n(soon),
        "fraction": n(f"{soon}.75"),
        "exponent": n(f"{soon / 10}E1"),
        "last year": n(now - 365 * DAY_S),
        "almost five years ago": n(now - FIVE_YEARS_S + DAY_S),
    }
    stay = {
        "text": s(str(soon)),
        "nested": {"M": {"expires": n(soon)}},
        "listed": {"L": [n(soon)]},
        "set": {"NS": [str(soon)]},
        "binary": {"B": str(soon).encode()},
        "flag": {"BOOL": True},
        "nothing": {"NULL": True},
        "zero": n(0),
        "negative": n(-soon),
        "huge": n("9" * 38),
        "five years ago": n(now - FIVE_YEARS_S - DAY_S),
        "milliseconds": n(soon * 1000),
    }
    for pk, value in (expire | stay).items():
        driven.dynamodb.put_item(TableName=table, Item=item(pk=pk) | {"expires": value})
    driven.clock.advance(seconds=60)
    assert keys_in(driven, table) == sorted(stay)


def test_a_key_can_be_the_time(driven):
    table = create_table(driven.dynamodb, keys="pk:S,at:N")
    switch(driven.dynamodb, table, True, "at")
    now = driven.clock.now_s()
    for delay in (5, 500):
        put(driven.dynamodb, table, pk=f"in {delay}", at=now + delay)
    driven.clock.advance(seconds=60)
    assert keys_in(driven, table) == ["in 500"]


def test_items_from_before_the_setting_expire_too(driven):
    table = create_table(driven.dynamodb)
    now = driven.clock.now_s()
    for start in range(0, 300, 25):
        items = [item(pk=f"{number:03}", expires=now - 10 + 20 * (number % 2)) for number in range(start, start + 25)]
        puts = [{"PutRequest": {"Item": each}} for each in items]
        driven.dynamodb.batch_write_item(RequestItems={table: puts})
    assert len(keys_in(driven, table)) == 300
    switch(driven.dynamodb, table, True)
    driven.clock.advance(seconds=1)
    assert keys_in(driven, table) == [f"{number:03}" for number in range(1, 300, 2)]
    driven.clock.advance(seconds=30)
    assert keys_in(driven, table) == []


def test_indexes_forget_expired_items(driven):
    table = expiring_table(driven, keys="pk:S,sk:S", gsi=[("global", "g:S")], lsi=[("local", "pk:S,l:S")])
    now = driven.clock.now_s()
    for pk, delay in (("first", 5), ("second", 500)):
        put(driven.dynamodb, table, pk=pk, sk="s", g="g", l="l", expires=now + delay)
    driven.clock.advance(seconds=60)
    for index in ("global", "local"):
        assert keys_in(driven, table, IndexName=index) == ["second"]


def test_nothing_expires_once_the_setting_is_off(driven):
    table = expiring_table(driven)
    put(driven.dynamodb, table, pk="a", expires=driven.clock.now_s() + 3600)
    with invalid("Time to live has been modified multiple times within a fixed interval"):
        switch(driven.dynamodb, table, False)
    driven.clock.advance(minutes=31)
    switch(driven.dynamodb, table, False)
    driven.clock.advance(hours=2)
    assert keys_in(driven, table) == ["a"]
    # Another attribute can be chosen then; the old one means nothing any more.
    put(driven.dynamodb, table, pk="b", expires=1, until=driven.clock.now_s() + 5)
    switch(driven.dynamodb, table, True, "until")
    driven.clock.advance(minutes=1)
    assert keys_in(driven, table) == ["a"]


def test_tables_expire_side_by_side_and_deleted_ones_in_peace(driven):
    tables = [expiring_table(driven) for _ in range(3)]
    plain = create_table(driven.dynamodb)
    expires = driven.clock.now_s() + 5
    for table in [*tables, plain]:
        put(driven.dynamodb, table, pk="a", expires=expires)
    driven.dynamodb.delete_table(TableName=tables[0])
    driven.clock.advance(seconds=6)
    assert [keys_in(driven, table) for table in tables[1:]] == [[], []]
    assert keys_in(driven, plain) == ["a"]


def test_many_items_expire_at_once(driven):
    table, arn = streaming.create_table(driven.dynamodb, "KEYS_ONLY")
    switch(driven.dynamodb, table, True)
    expires = driven.clock.now_s() + 5
    for start in range(0, 2000, 25):
        puts = [{"PutRequest": {"Item": item(pk=f"{n}", expires=expires)}} for n in range(start, start + 25)]
        driven.dynamodb.batch_write_item(RequestItems={table: puts})
    driven.clock.advance(seconds=6)
    assert driven.dynamodb.scan(TableName=table, Select="COUNT")["Count"] == 0
    removed = [r for r in streaming.records(driven.streams, arn) if r["eventName"] == "REMOVE"]
    assert len(removed) == 2000 and all(record["userIdentity"] == SERVICE for record in removed)


def test_time_stands_still(driven):
    before = driven.clock.now_ms()
    table, arn = streaming.create_table(driven.dynamodb)
    put(driven.dynamodb, table, pk="a")
    assert driven.clock.now_ms() == before
    [record] = streaming.records(driven.streams, arn)
    assert record["dynamodb"]["ApproximateCreationDateTime"].timestamp() == before // 1000
    created = driven.dynamodb.describe_table(TableName=table)["Table"]["CreationDateTime"]
    assert round(created.timestamp() * 1000) == before
    assert driven.clock.advance(seconds=1.5) == before + 1500
    assert driven.clock.post({"set_ms": before + 9000}) == before + 9000
