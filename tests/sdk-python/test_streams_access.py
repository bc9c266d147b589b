"""Who reads which streams: signatures of the streams client, and tables of one's own."""

import boto3
import pytest

import streams as streaming
from server import Server
from support import CONFIG, REGION, item, missing_resource, put, refused, skip_if_aimed_elsewhere


class User:
    def __init__(self, server, key, secret="secret", region=REGION):
        make = lambda service: boto3.client(
            service, config=CONFIG, endpoint_url=server.endpoint, region_name=region,
            aws_access_key_id=key, aws_secret_access_key=secret,
        )
        self.dynamodb, self.streams = make("dynamodb"), make("dynamodbstreams")


@pytest.fixture
def verifying_server(tmp_path):
    skip_if_aimed_elsewhere()
    keys = tmp_path / "keys"
    keys.write_text("ada:secret-of-ada\n")
    keys.chmod(0o600)
    server = Server(arguments=["--credentials", str(keys)])
    yield server
    server.kill()


def test_signatures_are_verified(verifying_server):
    ada = User(verifying_server, "ada", "secret-of-ada")
    table, arn = streaming.create_table(ada.dynamodb)
    put(ada.dynamodb, table, pk="a")
    assert [change[0] for change in streaming.changes(ada.streams, arn)] == ["INSERT"]
    eve = User(verifying_server, "eve", "secret-of-ada")
    with refused("UnrecognizedClientException", "The security token included in the request is invalid."):
        eve.streams.list_streams()


def test_streams_belong_to_their_owners(scoped_server):
    ada, bob = User(scoped_server, "ada"), User(scoped_server, "bob")
    abroad = User(scoped_server, "ada", region="eu-west-1")
    arns = []
    for number, user in enumerate([ada, bob, abroad]):
        table, arn = streaming.create_table(user.dynamodb, name="orders")
        put(user.dynamodb, table, pk=f"of {number}")
        arns.append(arn)
    for number, (user, arn) in enumerate(zip([ada, bob, abroad], arns)):
        assert [stream["StreamArn"] for stream in user.streams.list_streams()["Streams"]] == [arn]
        records = streaming.records(user.streams, arn)
        assert [record["dynamodb"]["Keys"] for record in records] == [item(pk=f"of {number}")]
    assert streaming.records(abroad.streams, arns[2])[0]["awsRegion"] == "eu-west-1"
    with missing_resource(f"Requested resource not found: Stream: {arns[2]} not found"):
        ada.streams.describe_stream(StreamArn=arns[2])

    # An iterator is no key to somebody else's records.
    shard = streaming.shards(ada.streams, arns[0])[0]["ShardId"]
    iterator = streaming.iterator(ada.streams, arns[0], shard)
    assert streaming.read(ada.streams, iterator)
    with missing_resource(f"Requested resource not found: Stream: {arns[0]} not found"):
        streaming.read(bob.streams, iterator)
