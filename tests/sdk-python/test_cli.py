"""The quick start, with the AWS CLI as a newcomer would type it."""

import json
import os
import subprocess
import sys

import pytest

from support import unique_name


@pytest.fixture
def aws(endpoint, tmp_path):
    environment = os.environ | {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        "AWS_PAGER": "",
    }

    def run(*arguments, fails=False):
        command = [sys.executable, "-m", "awscli", "dynamodb", *arguments, "--output", "json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        if fails:
            assert done.returncode != 0
            return done.stderr
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run


def test_quick_start(aws):
    table = unique_name("Music")
    created = aws(
        "create-table", "--table-name", table,
        "--attribute-definitions", "AttributeName=Artist,AttributeType=S", "AttributeName=Song,AttributeType=S",
        "--key-schema", "AttributeName=Artist,KeyType=HASH", "AttributeName=Song,KeyType=RANGE",
        "--billing-mode", "PAY_PER_REQUEST",
    )
    assert created["TableDescription"]["TableStatus"] == "CREATING"
    song = {"Artist": {"S": "Nina Simone"}, "Song": {"S": "Sinnerman"}, "Plays": {"N": "1"}}
    key = {name: song[name] for name in ("Artist", "Song")}
    aws("put-item", "--table-name", table, "--item", json.dumps(song))
    assert aws("get-item", "--table-name", table, "--key", json.dumps(key)) == {"Item": song}
    updated = aws(
        "update-item", "--table-name", table, "--key", json.dumps(key), "--update-expression", "ADD Plays :one",
        "--expression-attribute-values", '{":one": {"N": "1"}}', "--return-values", "UPDATED_NEW",
    )
    assert updated == {"Attributes": {"Plays": {"N": "2"}}}
    found = aws(
        "query", "--table-name", table, "--key-condition-expression", "Artist = :a",
        "--expression-attribute-values", '{":a": {"S": "Nina Simone"}}',
    )
    assert found["Count"] == 1
    assert table in aws("list-tables")["TableNames"]
    refused = aws(
        "put-item", "--table-name", table, "--item", json.dumps(song),
        "--condition-expression", "attribute_not_exists(Song)", fails=True,
    )
    assert "(ConditionalCheckFailedException)" in refused
    assert "The conditional request failed" in refused
    assert aws("delete-table", "--table-name", table)["TableDescription"]["TableStatus"] == "DELETING"
