"""Streams come and go, and stay readable for a day after they went."""

import streams as streaming
import support
from server import Server
from support import create_table, item, missing_resource, put

OFF = {"StreamEnabled": False}


def enable(dynamodb, table, view_type):
    dynamodb.update_table(TableName=table, StreamSpecification=streaming.specification(view_type))
    return streaming.latest_arn(dynamodb, table)


def test_every_enabling_makes_a_stream_of_its_own(dynamodb, streams):
    table = create_table(dynamodb)
    arns = []
    for round, view_type in enumerate(streaming.VIEW_TYPES):
        arns.append(enable(dynamodb, table, view_type))
        put(dynamodb, table, pk="a", round=round)
        dynamodb.update_table(TableName=table, StreamSpecification=OFF)
        put(dynamodb, table, pk="unseen", round=round)
    assert len(set(arns)) == 4 and arns == sorted(arns)
    assert [stream["StreamArn"] for stream in streams.list_streams(TableName=table)["Streams"]] == arns
    for arn, view_type in zip(arns, streaming.VIEW_TYPES):
        description = streaming.describe(streams, arn)
        assert (description["StreamStatus"], description["StreamViewType"]) == ("DISABLED", view_type)
        assert all("EndingSequenceNumber" in shard["SequenceNumberRange"] for shard in description["Shards"])
    of_round = [streaming.changes(streams, arn) for arn in arns]
    version = lambda round: item(pk="a", round=round)
    assert of_round == [
        [("INSERT", item(pk="a"), None, None)],
        [("MODIFY", item(pk="a"), version(1), None)],
        [("MODIFY", item(pk="a"), None, version(1))],
        [("MODIFY", item(pk="a"), version(3), version(2))],
    ]


def test_a_disabled_stream_can_be_read_to_its_end(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb)
    shards = [shard["ShardId"] for shard in streaming.shards(streams, arn)]
    iterators = [streaming.iterator(streams, arn, shard, "LATEST") for shard in shards]
    put(dynamodb, table, pk="a")
    dynamodb.update_table(TableName=table, StreamSpecification=OFF)
    found = [streaming.read(streams, iterator) for iterator in iterators]
    assert [after for _, after in found] == [None, None]
    assert [streaming.change(record)[0] for records, _ in found for record in records] == ["INSERT"]


def test_a_stream_outlives_its_table(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb)
    put(dynamodb, table, pk="a", v=1)
    dynamodb.delete_table(TableName=table)
    dynamodb.get_waiter("table_not_exists").wait(TableName=table, WaiterConfig={"Delay": 1})
    assert streaming.describe(streams, arn)["StreamStatus"] == "DISABLED"
    # A table that goes takes its items along without a record each.
    assert streaming.changes(streams, arn) == [("INSERT", item(pk="a"), item(pk="a", v=1), None)]

    # Another table of that name has a stream of its own.
    _, other = streaming.create_table(dynamodb, name=table)
    assert other != arn
    put(dynamodb, table, pk="b")
    assert [change[1] for change in streaming.changes(streams, other)] == [item(pk="b")]
    assert [change[1] for change in streaming.changes(streams, arn)] == [item(pk="a")]


def test_a_disabled_stream_is_gone_after_a_day(driven):
    dynamodb, streams, clock = driven.dynamodb, driven.streams, driven.clock
    table, arn = streaming.create_table(dynamodb)
    put(dynamodb, table, pk="a")
    clock.advance(hours=2)
    dynamodb.update_table(TableName=table, StreamSpecification=OFF)
    clock.advance(hours=21)
    assert len(streaming.records(streams, arn)) == 1
    clock.advance(hours=3)
    assert streams.list_streams()["Streams"] == []
    with missing_resource(f"Requested resource not found: Stream: {arn} not found"):
        streams.describe_stream(StreamArn=arn)
    # A new stream of the same table still has a later label.
    assert enable(dynamodb, table, "KEYS_ONLY") > arn


def test_the_retention_can_be_longer():
    support.skip_if_aimed_elsewhere()
    arguments = ["--driven-clock", "--stream-retention-hours", "72"]
    server = streaming.Driven(Server(arguments=arguments))
    try:
        table, arn = streaming.create_table(server.dynamodb)
        put(server.dynamodb, table, pk="a")
        server.clock.advance(hours=71)
        assert len(streaming.records(server.streams, arn)) == 1
        server.clock.advance(hours=2)
        assert streaming.records(server.streams, arn) == []
    finally:
        server.server.kill()


def test_a_stream_survives_a_kill(own_server):
    dynamodb, streams = support.client(own_server.endpoint), streaming.client(own_server.endpoint)
    table, arn = streaming.create_table(dynamodb)
    for number in range(30):
        put(dynamodb, table, pk=f"p{number % 7}", v=number)
    before = streaming.records(streams, arn)
    shards = streaming.shards(streams, arn)
    reader = streaming.read(streams, streaming.iterator(streams, arn, shards[0]["ShardId"]))[1]
    own_server.kill()
    own_server.start()
    dynamodb, streams = support.client(own_server.endpoint), streaming.client(own_server.endpoint)
    assert streaming.records(streams, arn) == before and len(before) == 30
    assert streaming.shards(streams, arn) == shards
    for number in range(30, 60):
        put(dynamodb, table, pk=f"p{number % 7}", v=number)
    after = streaming.records(streams, arn)
    assert len(after) == 60 and [record for record in after if record in before] == before
    # An iterator from before the kill goes on where it was.
    later = [record for record in streaming.read_shard(streams, arn, shards[0]["ShardId"]) if record not in before]
    assert streaming.read(streams, reader)[0] == later != []
