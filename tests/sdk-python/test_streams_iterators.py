"""Positions in a shard: every type of iterator, limits, age, and all that is refused."""

import json

import pytest

import streams as streaming
from support import invalid, item, missing_resource, put, refused

LENGTH_MIN = "failed to satisfy constraint: Member must have length greater than or equal to"
TRIMMED = "The operation attempted to read past the oldest stream record in a shard."
EXPIRED = "The provided iterator exceeds the maximum age allowed."
OUT_OF_RANGE = "Invalid SequenceNumber: it is not within the range of the shard"


class Shard:
    """A table whose one used shard holds records of the versions 0 to 9 of one item."""

    def __init__(self, dynamodb, streams):
        self.dynamodb, self.streams = dynamodb, streams
        self.table, self.arn = streaming.create_table(dynamodb, "NEW_IMAGE")
        for version in range(10):
            self.put(version)
        used = {
            shard["ShardId"]: records
            for shard in streaming.shards(streams, self.arn)
            if (records := streaming.read_shard(streams, self.arn, shard["ShardId"]))
        }
        [(self.id, records)] = used.items()
        self.numbers = [record["dynamodb"]["SequenceNumber"] for record in records]

    def put(self, version):
        put(self.dynamodb, self.table, pk="a", version=version)

    def iterator(self, kind, **position):
        return streaming.iterator(self.streams, self.arn, self.id, kind, **position)

    def versions(self, iterator, **parameters):
        records, _ = streaming.read(self.streams, iterator, **parameters)
        return [int(streaming.change(record)[2]["version"]["N"]) for record in records]


@pytest.fixture
def shard(dynamodb, streams):
    return Shard(dynamodb, streams)


@pytest.fixture
def at_timestamp(streams):
    """Makes iterators of the type that this SDK does not know yet."""

    def make(shard, timestamp):
        def add(params, **_):
            body = json.loads(params["body"]) | {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": timestamp}
            params["body"] = json.dumps(body).encode()

        event = "before-call.dynamodb-streams.GetShardIterator"
        shard.streams.meta.events.register(event, add)
        try:
            return shard.iterator("TRIM_HORIZON")
        finally:
            shard.streams.meta.events.unregister(event, add)

    return make


def test_the_types_of_iterators(shard):
    assert shard.versions(shard.iterator("TRIM_HORIZON")) == list(range(10))
    for index, number in enumerate(shard.numbers):
        at = shard.iterator("AT_SEQUENCE_NUMBER", SequenceNumber=number)
        assert shard.versions(at) == list(range(index, 10))
        after = shard.iterator("AFTER_SEQUENCE_NUMBER", SequenceNumber=number)
        assert shard.versions(after) == list(range(index + 1, 10))
    latest = shard.iterator("LATEST")
    assert shard.versions(latest) == []
    shard.put(10)
    assert shard.versions(latest) == [10]
    assert len(latest) <= 2048


def test_the_starting_number_of_a_shard_is_a_position(shard):
    described = [s for s in streaming.shards(shard.streams, shard.arn) if s["ShardId"] == shard.id]
    start = described[0]["SequenceNumberRange"]["StartingSequenceNumber"]
    assert shard.versions(shard.iterator("AT_SEQUENCE_NUMBER", SequenceNumber=start)) == list(range(10))


def test_iterators_at_a_time(driven, at_timestamp):
    shard = Shard(driven.dynamodb, driven.streams)
    for version in (10, 11, 12):
        driven.clock.advance(seconds=10)
        shard.put(version)
    now = driven.clock.now_ms() / 1000
    assert shard.versions(at_timestamp(shard, now)) == [12]
    assert shard.versions(at_timestamp(shard, now - 0.001)) == [12]
    assert shard.versions(at_timestamp(shard, now - 10)) == [11, 12]
    assert shard.versions(at_timestamp(shard, now - 30)) == list(range(13))
    assert shard.versions(at_timestamp(shard, 1)) == list(range(13)), "older than everything is the oldest"
    with invalid("Timestamp must not be in the future"):
        at_timestamp(shard, now + 1)


def test_an_iterator_can_be_used_again(shard):
    iterator = shard.iterator("TRIM_HORIZON")
    assert shard.versions(iterator) == shard.versions(iterator) == list(range(10))


@pytest.mark.parametrize("limit", [1, 3, 10, 1000])
def test_a_page_has_at_most_so_many_records(shard, limit):
    page = shard.streams.get_records(ShardIterator=shard.iterator("TRIM_HORIZON"), Limit=limit)
    assert len(page["Records"]) == min(limit, 10)
    assert shard.versions(shard.iterator("TRIM_HORIZON"), Limit=limit) == list(range(10))


def test_a_page_has_at_most_a_thousand_records(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb, "KEYS_ONLY", keys="pk:S,sk:N")
    for start in range(0, 1100, 25):
        puts = [{"PutRequest": {"Item": item(pk="a", sk=number)}} for number in range(start, start + 25)]
        dynamodb.batch_write_item(RequestItems={table: puts})
    sizes = []
    for shard in streaming.shards(streams, arn):
        page = streams.get_records(ShardIterator=streaming.iterator(streams, arn, shard["ShardId"]))
        rest, _ = streaming.read(streams, page["NextShardIterator"])
        sizes.append((len(page["Records"]), len(rest)))
    assert sorted(sizes) == [(0, 0), (1000, 100)]


def test_a_page_has_about_a_megabyte(dynamodb, streams):
    table, arn = streaming.create_table(dynamodb, "NEW_IMAGE")
    for version in range(6):
        put(dynamodb, table, pk="a", version=version, text="x" * 300_000)
    for shard in streaming.shards(streams, arn):
        pages, iterator = [], streaming.iterator(streams, arn, shard["ShardId"])
        while (page := streams.get_records(ShardIterator=iterator))["Records"]:
            pages.append(len(page["Records"]))
            iterator = page["NextShardIterator"]
        assert pages in ([], [3, 3])


def test_iterators_age(driven):
    shard = Shard(driven.dynamodb, driven.streams)
    iterator = shard.iterator("TRIM_HORIZON")
    driven.clock.advance(minutes=15)
    page = driven.streams.get_records(ShardIterator=iterator)
    assert len(page["Records"]) == 10
    driven.clock.advance(seconds=0.001)
    with refused("ExpiredIteratorException", EXPIRED):
        driven.streams.get_records(ShardIterator=iterator)
    # What a page hands on is young again.
    assert driven.streams.get_records(ShardIterator=page["NextShardIterator"])["Records"] == []


def test_records_are_trimmed_after_a_day(driven):
    shard = Shard(driven.dynamodb, driven.streams)
    driven.clock.advance(hours=1)
    shard.put(10)
    young = streaming.read_shard(driven.streams, shard.arn, shard.id, "AFTER_SEQUENCE_NUMBER",
                                 SequenceNumber=shard.numbers[-1])[0]["dynamodb"]["SequenceNumber"]
    driven.clock.advance(hours=23, seconds=1)
    assert shard.versions(shard.iterator("TRIM_HORIZON")) == [10]
    assert shard.versions(shard.iterator("AT_SEQUENCE_NUMBER", SequenceNumber=young)) == [10]
    for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
        with refused("TrimmedDataAccessException", TRIMMED):
            shard.iterator(kind, SequenceNumber=shard.numbers[3])
    # The jump closed the shard. A day after that it goes whole.
    driven.clock.advance(hours=24, seconds=1)
    ids = [described["ShardId"] for described in streaming.shards(driven.streams, shard.arn)]
    assert shard.id not in ids and len(ids) == 4


def test_an_iterator_into_what_was_trimmed_is_refused(driven):
    shard = Shard(driven.dynamodb, driven.streams)
    driven.clock.advance(hours=4)
    driven.clock.advance(hours=23, minutes=50)
    iterator = shard.iterator("TRIM_HORIZON")
    driven.clock.advance(minutes=14)
    with refused("TrimmedDataAccessException", TRIMMED):
        driven.streams.get_records(ShardIterator=iterator)


ITERATOR_ERRORS = {
    "no number": (
        {"ShardIteratorType": "AT_SEQUENCE_NUMBER"},
        "SequenceNumber is required for ShardIteratorType AT_SEQUENCE_NUMBER",
    ),
    "a number where none belongs": (
        {"ShardIteratorType": "TRIM_HORIZON", "SequenceNumber": "1" * 21},
        "SequenceNumber must not be specified for ShardIteratorType TRIM_HORIZON",
    ),
    "a number of another shard": (
        {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": "9" + "0" * 19 + "1"}, OUT_OF_RANGE,
    ),
    "no number at all": (
        {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": "x" * 21},
        "Invalid SequenceNumber: " + "x" * 21,
    ),
    "a short number": (
        {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": "1"},
        f"1 validation error detected: Value '1' at 'sequenceNumber' {LENGTH_MIN} 21",
    ),
    "an unknown type": (
        {"ShardIteratorType": "SOMETIME"},
        "1 validation error detected: Value 'SOMETIME' at 'shardIteratorType' failed to satisfy constraint: Member "
        "must satisfy enum value set: [AFTER_SEQUENCE_NUMBER, LATEST, AT_TIMESTAMP, AT_SEQUENCE_NUMBER, TRIM_HORIZON]",
    ),
    "a short shard id": (
        {"ShardIteratorType": "LATEST", "ShardId": "short"},
        f"1 validation error detected: Value 'short' at 'shardId' {LENGTH_MIN} 28",
    ),
}


@pytest.mark.parametrize("case", ITERATOR_ERRORS)
def test_iterators_that_are_refused(shard, case):
    parameters, message = ITERATOR_ERRORS[case]
    with invalid(message):
        shard.streams.get_shard_iterator(**{"StreamArn": shard.arn, "ShardId": shard.id} | parameters)


def test_shards_and_streams_that_are_not_there(shard):
    unknown = "shardId-00000000000000000000-ffffffff"
    with missing_resource(f"Requested resource not found: Shard: {unknown} in Stream: {shard.arn} not found"):
        streaming.iterator(shard.streams, shard.arn, unknown)
    missing = shard.arn.replace(shard.table, "never-made")
    with missing_resource(f"Requested resource not found: Stream: {missing} not found"):
        streaming.iterator(shard.streams, missing, shard.id)


def test_reads_that_are_refused(shard):
    iterator = shard.iterator("TRIM_HORIZON")
    limit = "1 validation error detected: Value '{}' at 'limit' failed to satisfy constraint: Member must have value {}"
    with invalid(limit.format(0, "greater than or equal to 1")):
        shard.streams.get_records(ShardIterator=iterator, Limit=0)
    with invalid(limit.format(1001, "less than or equal to 1000")):
        shard.streams.get_records(ShardIterator=iterator, Limit=1001)
    for broken in ("x", iterator[:-4], iterator[4:], iterator.swapcase(), iterator + "AAAA"):
        with invalid("Invalid ShardIterator"):
            shard.streams.get_records(ShardIterator=broken)
