"""A hot counter spread over several items: increments go to any of them, readers sum them up."""

import concurrent.futures
import random

from support import create_table, item, n

SHARDS = 8
INCREMENTS = 200


def test_no_increment_is_lost(dynamodb):
    table = create_table(dynamodb, keys="pk:S")

    def increment(number):
        shard = random.Random(number).randrange(SHARDS)
        dynamodb.update_item(
            TableName=table, Key=item(pk=f"votes#{shard}"), UpdateExpression="ADD votes :one",
            ExpressionAttributeValues={":one": n(1)},
        )

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(increment, range(INCREMENTS)))
    keys = [item(pk=f"votes#{shard}") for shard in range(SHARDS)]
    answer = dynamodb.batch_get_item(RequestItems={table: {"Keys": keys, "ConsistentRead": True}})
    assert sum(int(entry["votes"]["N"]) for entry in answer["Responses"][table]) == INCREMENTS
