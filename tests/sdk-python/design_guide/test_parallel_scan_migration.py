"""A new access pattern for old data: workers scan in segments, fill in the new attribute conditionally,
and the index over it is complete, although the application keeps writing."""

import concurrent.futures
import threading

from botocore.exceptions import ClientError

from support import all_items, create_table, index_definition, item, names_in, put, s, wait_for_indexes

ITEMS = 200
SEGMENTS = 4


def test_backfilling_an_index_attribute(dynamodb):
    table = create_table(dynamodb, keys="pk:S")
    users = [item(pk=f"user{number:03}", city="Gent" if number % 4 else "Mons") for number in range(ITEMS)]
    requests = [{"PutRequest": {"Item": user}} for user in users]
    for start in range(0, ITEMS, 25):
        dynamodb.batch_write_item(RequestItems={table: requests[start:start + 25]})
    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "city_key")],
        GlobalSecondaryIndexUpdates=[{"Create": index_definition("by-city", "city_key:S,pk:S", "KEYS_ONLY")}],
    )
    stop = threading.Event()

    def application():
        """Moves users around while the migration runs; it already writes the new attribute."""
        moved = 0
        while not stop.is_set():
            put(dynamodb, table, pk=f"user{moved % ITEMS:03}", city="Namur", city_key="CITY#Namur")
            moved += 7
        return moved

    def migrate(segment):
        for found in all_items(dynamodb.scan, TableName=table, TotalSegments=SEGMENTS, Segment=segment, Limit=10):
            try:
                dynamodb.update_item(
                    TableName=table, Key={"pk": found["pk"]}, UpdateExpression="SET city_key = :key",
                    ConditionExpression="attribute_not_exists(city_key) AND city = :city",
                    ExpressionAttributeValues={":key": s("CITY#" + found["city"]["S"]), ":city": found["city"]},
                )
            except ClientError as error:
                # The application got there first.
                assert error.response["Error"]["Code"] == "ConditionalCheckFailedException"

    with concurrent.futures.ThreadPoolExecutor(SEGMENTS + 1) as pool:
        running = pool.submit(application)
        list(pool.map(migrate, range(SEGMENTS)))
        stop.set()
        assert running.result() > 0
    wait_for_indexes(dynamodb, table, {"by-city": "ACTIVE"})
    items = all_items(dynamodb.scan, TableName=table, ConsistentRead=True)
    assert all(entry["city_key"]["S"] == "CITY#" + entry["city"]["S"] for entry in items)
    for city in ("Gent", "Mons", "Namur"):
        expected = sorted(entry["pk"]["S"] for entry in items if entry["city"]["S"] == city)
        indexed = all_items(
            dynamodb.query, TableName=table, IndexName="by-city", KeyConditionExpression="city_key = :c",
            ExpressionAttributeValues={":c": s(f"CITY#{city}")},
        )
        assert names_in(indexed, "pk") == expected
