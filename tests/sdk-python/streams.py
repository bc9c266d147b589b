"""What the tests of streams share: tables with streams, walks through shards, records in short."""

import json
import urllib.error
import urllib.request

import boto3

import support

VIEW_TYPES = ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]


def client(endpoint):
    return boto3.client("dynamodbstreams", config=support.CONFIG, **support.connection(endpoint, support.REGION))


def specification(view_type):
    return {"StreamEnabled": True, "StreamViewType": view_type}


def create_table(dynamodb, view_type="NEW_AND_OLD_IMAGES", **short_form):
    """A table with a stream: its name and the stream's ARN."""
    table = support.create_table(dynamodb, StreamSpecification=specification(view_type), **short_form)
    return table, latest_arn(dynamodb, table)


def latest_arn(dynamodb, table):
    return dynamodb.describe_table(TableName=table)["Table"]["LatestStreamArn"]


def describe(streams, arn, **parameters):
    return streams.describe_stream(StreamArn=arn, **parameters)["StreamDescription"]


def shards(streams, arn, **parameters):
    """All shards, through all pages."""
    found = []
    while True:
        page = describe(streams, arn, **parameters)
        found += page["Shards"]
        if "LastEvaluatedShardId" not in page:
            return found
        parameters["ExclusiveStartShardId"] = page["LastEvaluatedShardId"]


def iterator(streams, arn, shard, kind="TRIM_HORIZON", **position):
    answer = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType=kind, **position)
    return answer["ShardIterator"]


def read(streams, iterator, **parameters):
    """The records from an iterator on, and the iterator after them: None at the end of a closed shard."""
    found = []
    while iterator:
        page = streams.get_records(ShardIterator=iterator, **parameters)
        iterator = page.get("NextShardIterator")
        found += page["Records"]
        if not page["Records"]:
            break
    return found, iterator


def read_shard(streams, arn, shard, kind="TRIM_HORIZON", **position):
    return read(streams, iterator(streams, arn, shard, kind, **position))[0]


def records(streams, arn):
    """Every record of a stream, shard after shard, parents before their children."""
    return [record for shard in shards(streams, arn) for record in read_shard(streams, arn, shard["ShardId"])]


def change(record):
    """What a record says of its item: event, keys, new image, old image."""
    body = record["dynamodb"]
    return record["eventName"], body["Keys"], body.get("NewImage"), body.get("OldImage")


def changes(streams, arn):
    return [change(record) for record in records(streams, arn)]


def sequence_number(record):
    return int(record["dynamodb"]["SequenceNumber"])


class Clock:
    """The clock of a server that was started with `--driven-clock`."""

    def __init__(self, endpoint):
        self.url = endpoint + "/_zenobe/clock"

    def now_ms(self):
        return self._call(urllib.request.Request(self.url))["now_ms"]

    def now_s(self):
        return self.now_ms() // 1000

    def advance(self, seconds=0, minutes=0, hours=0):
        """Returns when what has become due is done: items are expired, shards rolled over."""
        milliseconds = round(1000 * (seconds + 60 * (minutes + 60 * hours)))
        return self.post({"advance_ms": milliseconds})

    def post(self, body):
        return self._call(urllib.request.Request(self.url, json.dumps(body).encode(), method="POST"))["now_ms"]

    def _call(self, request):
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


class Driven:
    """A server with a driven clock, and all that a test needs to use it."""

    def __init__(self, server):
        self.server = server
        self.dynamodb = support.client(server.endpoint)
        self.streams = client(server.endpoint)
        self.clock = Clock(server.endpoint)
