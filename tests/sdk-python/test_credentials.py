"""Signatures of the real SDK, verified where the server knows the keys."""

import boto3
import pytest
from botocore.exceptions import ClientError

from server import Server
from support import CONFIG, REGION, refused, skip_if_aimed_elsewhere

MISMATCH = (
    "The request signature we calculated does not match the signature you provided. "
    "Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
)


@pytest.fixture(scope="module")
def verifying_server(tmp_path_factory):
    skip_if_aimed_elsewhere()
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("ada:secret-of-ada\nbob:secret-of-bob\n")
    keys.chmod(0o600)
    server = Server(arguments=["--credentials", str(keys)])
    yield server
    server.kill()


def client(server, key, secret, region=REGION, token=None):
    return boto3.client(
        "dynamodb", config=CONFIG, endpoint_url=server.endpoint, region_name=region,
        aws_access_key_id=key, aws_secret_access_key=secret, aws_session_token=token,
    )


@pytest.mark.parametrize("name", ["ada", "bob"])
def test_known_keys(verifying_server, name):
    dynamodb = client(verifying_server, name, f"secret-of-{name}")
    assert dynamodb.list_tables()["TableNames"] == []
    # A body with characters of every kind is signed as bytes.
    with refused("ResourceNotFoundException", "Requested resource not found"):
        dynamodb.get_item(TableName="missing", Key={"pk": {"S": "ünï ☃ \U0001f600 \"quoted\" \\ \n"}})


def test_a_wrong_secret(verifying_server):
    with pytest.raises(ClientError) as caught:
        client(verifying_server, "ada", "secret-of-bob").list_tables()
    error = caught.value.response["Error"]
    assert error["Code"] == "InvalidSignatureException"
    # What follows the first sentences is not relied upon.
    assert error["Message"].startswith(MISMATCH)


def test_an_unknown_key(verifying_server):
    message = "The security token included in the request is invalid."
    with refused("UnrecognizedClientException", message):
        client(verifying_server, "eve", "secret-of-ada").list_tables()


def test_another_region(verifying_server):
    message = "Credential should be scoped to a valid region, not 'eu-west-1'. "
    with refused("InvalidSignatureException", message):
        client(verifying_server, "ada", "secret-of-ada", region="eu-west-1").list_tables()
