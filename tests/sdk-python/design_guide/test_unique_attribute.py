"""A second unique attribute: an item reserves it, in the same transaction as the user."""

import concurrent.futures

import pytest
from botocore.exceptions import ClientError

from support import all_items, create_table, get, item


def register(dynamodb, table, user, email):
    absent = {"ConditionExpression": "attribute_not_exists(pk)"}
    dynamodb.transact_write_items(TransactItems=[
        {"Put": {"TableName": table, "Item": item(pk=f"user#{user}", email=email), **absent}},
        {"Put": {"TableName": table, "Item": item(pk=f"email#{email}", holder=user), **absent}},
    ])


def test_an_address_is_taken_once(dynamodb):
    table = create_table(dynamodb, keys="pk:S")
    register(dynamodb, table, "ada", "a@example.org")
    with pytest.raises(ClientError) as caught:
        register(dynamodb, table, "bob", "a@example.org")
    assert caught.value.response["Error"] == {
        "Code": "TransactionCanceledException",
        "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons "
                   "[None, ConditionalCheckFailed]",
    }
    assert get(dynamodb, table, pk="user#bob") is None
    register(dynamodb, table, "bob", "b@example.org")


def test_one_of_many_contenders_wins(dynamodb):
    table = create_table(dynamodb, keys="pk:S")

    def contend(number):
        try:
            register(dynamodb, table, f"user{number}", "wanted@example.org")
            return f"user{number}"
        except ClientError as error:
            assert error.response["Error"]["Code"] == "TransactionCanceledException"
            return None

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        winners = [winner for winner in pool.map(contend, range(24)) if winner]
    assert len(winners) == 1
    assert get(dynamodb, table, pk="email#wanted@example.org")["holder"]["S"] == winners[0]
    assert len(all_items(dynamodb.scan, TableName=table)) == 2
