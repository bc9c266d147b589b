"""Read, change, write back if the version is still the one read; otherwise read again."""

import concurrent.futures

from botocore.exceptions import ClientError

from support import create_table, get, item, n, put

WRITERS = 8
CHANGES = 10


def test_no_update_is_lost(dynamodb):
    table = create_table(dynamodb, keys="pk:S")
    put(dynamodb, table, pk="doc", version=0, entries=[])

    def append(writer):
        refusals = 0
        for change in range(CHANGES):
            while True:
                current = get(dynamodb, table, pk="doc")
                version = int(current["version"]["N"])
                entries = current["entries"]["L"] + [{"S": f"{writer}-{change}"}]
                try:
                    dynamodb.put_item(
                        TableName=table,
                        Item=item(pk="doc", version=version + 1) | {"entries": {"L": entries}},
                        ConditionExpression="version = :read",
                        ExpressionAttributeValues={":read": n(version)},
                    )
                    break
                except ClientError as error:
                    assert error.response["Error"]["Code"] == "ConditionalCheckFailedException"
                    refusals += 1
        return refusals

    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(append, range(WRITERS)))
    final = get(dynamodb, table, pk="doc")
    assert final["version"] == n(WRITERS * CHANGES)
    written = sorted(entry["S"] for entry in final["entries"]["L"])
    assert written == sorted(f"{writer}-{change}" for writer in range(WRITERS) for change in range(CHANGES))
