"""Streams and their shards: lists in pages, descriptions, roll-over, readers side by side."""

import concurrent.futures
import threading

import pytest

import streams as streaming
import support
from support import create_table, invalid, item, missing_resource, put

LENGTH_MIN = "failed to satisfy constraint: Member must have length greater than or equal to"
VALUE_MIN = "failed to satisfy constraint: Member must have value greater than or equal to 1"
VALUE_MAX = "failed to satisfy constraint: Member must have value less than or equal to 100"


def listed(streams, **parameters):
    return [stream["StreamArn"] for stream in streams.list_streams(**parameters)["Streams"]]


def all_listed(streams, **parameters):
    arns = []
    while True:
        page = streams.list_streams(**parameters)
        arns += [stream["StreamArn"] for stream in page["Streams"]]
        if "LastEvaluatedStreamArn" not in page:
            return arns
        assert page["LastEvaluatedStreamArn"] == arns[-1]
        parameters["ExclusiveStartStreamArn"] = page["LastEvaluatedStreamArn"]


def test_streams_are_listed_in_pages(memory_server):
    dynamodb, streams = support.client(memory_server.endpoint), streaming.client(memory_server.endpoint)
    assert streams.list_streams()["Streams"] == []
    made = [streaming.create_table(dynamodb) for _ in range(5)]
    plain = create_table(dynamodb)
    arns = sorted(arn for _, arn in made)
    assert listed(streams) == arns
    for limit in (1, 2, 5, 100):
        assert all_listed(streams, Limit=limit) == arns
    table, arn = made[2]
    label = arn.rsplit("/", 1)[1]
    assert streams.list_streams(TableName=table)["Streams"] == [
        {"StreamArn": arn, "TableName": table, "StreamLabel": label}
    ]
    assert listed(streams, TableName=plain) == []
    assert listed(streams, TableName="missing") == []
    assert listed(streams, TableName=table, ExclusiveStartStreamArn=arn) == []


def test_a_stream_is_described(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb, "OLD_IMAGE", keys="pk:S,sk:N")
    description = streaming.describe(streams, arn)
    created = description.pop("CreationRequestDateTime")
    shards = description.pop("Shards")
    label = arn.rsplit("/", 1)[1]
    assert description == {
        "StreamArn": arn, "StreamLabel": label, "StreamStatus": "ENABLED", "StreamViewType": "OLD_IMAGE",
        "TableName": table, "KeySchema": support.key_schema("pk:S,sk:N"),
    }
    assert created.strftime("%Y-%m-%dT%H:%M:%S") == label[:19]
    for shard in shards:
        assert set(shard) == {"ShardId", "SequenceNumberRange"}, "a first shard is open and has no parent"
        assert 28 <= len(shard["ShardId"]) <= 65
        assert set(shard["SequenceNumberRange"]) == {"StartingSequenceNumber"}
    assert len(shards) == 2


def test_a_stream_has_one_shard_by_default(memory_server):
    dynamodb, streams = support.client(memory_server.endpoint), streaming.client(memory_server.endpoint)
    _, arn = streaming.create_table(dynamodb)
    assert len(streaming.shards(streams, arn)) == 1


@pytest.mark.stream_shards(5)
def test_shards_are_described_in_pages(driven):
    streams = driven.streams
    _, arn = streaming.create_table(driven.dynamodb)
    whole = streaming.describe(streams, arn)
    assert "LastEvaluatedShardId" not in whole
    ids = [shard["ShardId"] for shard in whole["Shards"]]
    assert len(ids) == 5 and ids == sorted(ids)
    for limit in (1, 2, 3, 5, 100):
        assert streaming.shards(streams, arn, Limit=limit) == whole["Shards"]
    page = streaming.describe(streams, arn, Limit=2)
    assert page["LastEvaluatedShardId"] == ids[1]
    # Where to start needs not exist.
    between = ids[2] + "-x"
    assert [shard["ShardId"] for shard in streaming.shards(streams, arn, ExclusiveStartShardId=between)] == ids[3:]


def test_shards_roll_over_to_their_children(driven):
    dynamodb, streams, clock = driven.dynamodb, driven.streams, driven.clock
    table, arn = streaming.create_table(dynamodb)
    for generation in range(3):
        for pk in "abcdef":
            put(dynamodb, table, pk=pk, generation=generation)
        clock.advance(hours=4)
    for pk in "abcdef":
        put(dynamodb, table, pk=pk, generation=3)

    shards = streaming.shards(streams, arn)
    ids = [shard["ShardId"] for shard in shards]
    assert len(ids) == 8 and ids == sorted(ids), "names are in the order of time"
    assert [shard.get("ParentShardId") for shard in shards] == [None, None, *ids[:6]]
    for shard in shards[:6]:
        span = shard["SequenceNumberRange"]
        numbers = [streaming.sequence_number(r) for r in streaming.read_shard(streams, arn, shard["ShardId"])]
        assert numbers, "each shard had an item"
        assert int(span["StartingSequenceNumber"]) <= numbers[0]
        assert numbers[-1] == int(span["EndingSequenceNumber"])
        records, after = streaming.read(streams, streaming.iterator(streams, arn, shard["ShardId"]))
        assert after is None, "a closed shard has an end"
    for shard in shards[6:]:
        assert "EndingSequenceNumber" not in shard["SequenceNumberRange"]

    for parent, child in zip(ids, ids[2:]):
        wanted = {"Type": "CHILD_SHARDS", "ShardId": parent}
        found = streaming.shards(streams, arn, ShardFilter=wanted)
        assert [shard["ShardId"] for shard in found] == [child]
    assert streaming.shards(streams, arn, ShardFilter={"Type": "CHILD_SHARDS", "ShardId": ids[-1]}) == []

    # Walking from parent to child meets every change of an item in order, with rising numbers.
    for root in ids[:2]:
        lineage = [root]
        while children := [s["ShardId"] for s in shards if s.get("ParentShardId") == lineage[-1]]:
            lineage += children
        assert len(lineage) == 4
        records = [r for shard in lineage for r in streaming.read_shard(streams, arn, shard)]
        numbers = list(map(streaming.sequence_number, records))
        assert numbers == sorted(set(numbers))
        by_item = {}
        for _, keys, new, _ in map(streaming.change, records):
            by_item.setdefault(keys["pk"]["S"], []).append(int(new["generation"]["N"]))
        assert set(map(tuple, by_item.values())) == {(0, 1, 2, 3)}


def test_a_reader_at_the_end_of_a_shard_learns_that_it_closed(driven):
    dynamodb, streams = driven.dynamodb, driven.streams
    table, arn = streaming.create_table(dynamodb)
    put(dynamodb, table, pk="a")
    shards = [shard["ShardId"] for shard in streaming.shards(streams, arn)]
    waiting = [streaming.read(streams, streaming.iterator(streams, arn, shard))[1] for shard in shards]
    assert all(waiting)
    for _ in range(17):
        # Iterators live for fifteen minutes; a reader that polls gets new ones.
        driven.clock.advance(minutes=14.5)
        waiting = [iterator and streaming.read(streams, iterator)[1] for iterator in waiting]
    assert waiting == [None, None]


def test_positions_in_closed_shards(driven):
    dynamodb, streams = driven.dynamodb, driven.streams
    table, arn = streaming.create_table(dynamodb)
    put(dynamodb, table, pk="a")
    driven.clock.advance(hours=4)
    counts = set()
    for shard in streaming.shards(streams, arn)[:2]:

        def read(kind, **position):
            iterator = streaming.iterator(streams, arn, shard["ShardId"], kind, **position)
            records, after = streaming.read(streams, iterator)
            assert after is None
            return len(records)

        count = read("TRIM_HORIZON")
        counts.add(count)
        span = shard["SequenceNumberRange"]
        assert read("AT_SEQUENCE_NUMBER", SequenceNumber=span["StartingSequenceNumber"]) == count
        assert read("AT_SEQUENCE_NUMBER", SequenceNumber=span["EndingSequenceNumber"]) == count
        assert read("AFTER_SEQUENCE_NUMBER", SequenceNumber=span["EndingSequenceNumber"]) == 0
        assert read("LATEST") == 0
    assert counts == {0, 1}, "one shard is empty"


@pytest.mark.stream_shards(5)
def test_readers_side_by_side_see_everything_once(driven):
    dynamodb, streams = driven.dynamodb, driven.streams
    table, arn = streaming.create_table(dynamodb)
    shards = [shard["ShardId"] for shard in streaming.shards(streams, arn)]
    writers, items = 8, 40

    def write(writer):
        for number in range(items):
            put(dynamodb, table, pk=f"{writer}-{number % 10}", version=number)

    def follow(shard):
        found, iterator, idle = [], streaming.iterator(streams, arn, shard), 0
        while idle < 3:
            page, iterator = streaming.read(streams, iterator, Limit=7)
            found += page
            idle = 0 if page or not written.is_set() else idle + 1
        return found

    written = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        readers = [pool.submit(follow, shard) for shard in shards]
        list(pool.map(write, range(writers)))
        written.set()
        by_shard = [reader.result() for reader in readers]
    versions = {}
    for records in by_shard:
        numbers = list(map(streaming.sequence_number, records))
        assert numbers == sorted(set(numbers))
        for _, keys, new, _ in map(streaming.change, records):
            versions.setdefault(keys["pk"]["S"], []).append(int(new["version"]["N"]))
    assert len(versions) == writers * 10
    for pk, seen in versions.items():
        assert seen == list(range(int(pk.split("-")[1]), items, 10))
    assert all(by_shard), "eighty partitions leave a shard empty"


def test_descriptions_that_fail(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb)
    missing = arn.replace(table, "never-made")
    with missing_resource(f"Requested resource not found: Stream: {missing} not found"):
        streams.describe_stream(StreamArn=missing)
    with missing_resource(f"Requested resource not found: Stream: {arn[:-1]}x not found"):
        streams.describe_stream(StreamArn=arn[:-1] + "x")
    table_arn = arn.split("/stream/")[0]
    with invalid(f"Invalid StreamArn: {table_arn}"):
        streams.describe_stream(StreamArn=table_arn)
    with invalid(f"1 validation error detected: Value 'short' at 'streamArn' {LENGTH_MIN} 37"):
        streams.describe_stream(StreamArn="short")
    with invalid(f"1 validation error detected: Value '0' at 'limit' {VALUE_MIN}"):
        streams.describe_stream(StreamArn=arn, Limit=0)
    with invalid(f"1 validation error detected: Value '101' at 'limit' {VALUE_MAX}"):
        streams.describe_stream(StreamArn=arn, Limit=101)


def test_lists_that_fail(streams):
    with invalid(f"1 validation error detected: Value '0' at 'limit' {VALUE_MIN}"):
        streams.list_streams(Limit=0)
    with invalid(f"1 validation error detected: Value '101' at 'limit' {VALUE_MAX}"):
        streams.list_streams(Limit=101)
    with invalid(f"1 validation error detected: Value 'x' at 'tableName' {LENGTH_MIN} 3"):
        streams.list_streams(TableName="x")
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/Mango"
    with invalid(f"Invalid StreamArn: {arn}"):
        streams.list_streams(ExclusiveStartStreamArn=arn)
