"""Every version is kept; version zero is a copy of the newest, replaced in one transaction."""

import pytest

from support import create_table, get, item, n, names_in, s


def save(dynamodb, table, document, version, body):
    """Writes version `version`, which must follow the current one."""
    dynamodb.transact_write_items(TransactItems=[
        {"Put": {
            "TableName": table,
            "Item": item(document=document, version=f"v{version:04}", body=body),
            "ConditionExpression": "attribute_not_exists(document)",
        }},
        {"Update": {
            "TableName": table,
            "Key": item(document=document, version="v0000"),
            "UpdateExpression": "SET latest = :new, body = :body",
            "ConditionExpression": "attribute_not_exists(latest) OR latest = :old",
            "ExpressionAttributeValues": {":new": n(version), ":old": n(version - 1), ":body": s(body)},
        }},
    ])


def test_the_newest_version_is_read_by_one_key(dynamodb):
    table = create_table(dynamodb, keys="document:S,version:S")
    for version in (1, 2, 3):
        save(dynamodb, table, "doc", version, f"text {version}")
    newest = get(dynamodb, table, document="doc", version="v0000")
    assert (newest["latest"], newest["body"]) == (n(3), s("text 3"))
    history = dynamodb.query(
        TableName=table, KeyConditionExpression="document = :d AND version > :zero", ScanIndexForward=False,
        ExpressionAttributeValues={":d": s("doc"), ":zero": s("v0000")},
    )
    assert names_in(history["Items"], "body") == ["text 3", "text 2", "text 1"]
    # A writer that read version 1 is too late, and leaves no trace.
    with pytest.raises(dynamodb.exceptions.TransactionCanceledException) as caught:
        save(dynamodb, table, "doc", 2, "late")
    codes = [reason["Code"] for reason in caught.value.response["CancellationReasons"]]
    assert codes == ["ConditionalCheckFailed", "ConditionalCheckFailed"]
    assert get(dynamodb, table, document="doc", version="v0002")["body"] == s("text 2")
