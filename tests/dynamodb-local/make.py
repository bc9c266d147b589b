"""Makes the fixture beside this file, with a DynamoDB Local that runs on an empty directory.

    java -Djava.library.path=lib -cp 'lib/*' software.amazon.dynamodb.services.local.main.ServerRunner \\
      -sharedDb -dbPath data -port 18123 -disableTelemetry
    python make.py http://127.0.0.1:18123                      # prints what it holds: database.json
    gzip -9n < data/shared-local-instance.db > database.db.gz  # once DynamoDB Local has ended
"""

import base64
import json
import sys

import boto3

client = boto3.client(
    "dynamodb", endpoint_url=sys.argv[1], region_name="eu-west-1", aws_access_key_id="fixture", aws_secret_access_key="x"
)


def keys(*names):
    return [{"AttributeName": name, "KeyType": of} for name, of in zip(names, ["HASH", "RANGE"])]


def types(**attributes):
    return [{"AttributeName": name, "AttributeType": of} for name, of in attributes.items()]


def units(read, write):
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


client.create_table(
    TableName="Orders", AttributeDefinitions=types(customer="S", number="N", placed="S", status="S", total="N"),
    KeySchema=keys("customer", "number"), ProvisionedThroughput=units(5, 6),
    LocalSecondaryIndexes=[
        {"IndexName": "by-date", "KeySchema": keys("customer", "placed"), "Projection": {"ProjectionType": "KEYS_ONLY"}},
    ],
    GlobalSecondaryIndexes=[
        {
            "IndexName": "by-status", "KeySchema": keys("status", "total"), "ProvisionedThroughput": units(3, 4),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["note"]},
        },
        {
            "IndexName": "deleted-later", "KeySchema": keys("total"), "ProvisionedThroughput": units(1, 1),
            "Projection": {"ProjectionType": "ALL"},
        },
    ],
    StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
)
client.update_time_to_live(
    TableName="Orders", TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"}
)
client.put_item(TableName="Orders", Item={
    "customer": {"S": 'Zoë "quoted" \\ 🎉'}, "number": {"N": "-12345678901234567890.123456789012345678"},
    "placed": {"S": "2026-11-17"}, "status": {"S": "open"}, "total": {"N": "1E-130"}, "note": {"S": ""},
    "bytes": {"B": bytes(range(256))}, "yes": {"BOOL": True}, "no": {"BOOL": False}, "nothing": {"NULL": True},
    "strings": {"SS": ["b", "a", "ü"]}, "numbers": {"NS": ["3", "1.50", "-2"]}, "binaries": {"BS": [b"\x00", b"\xff\xfe"]},
    "list": {"L": [{"S": "x"}, {"N": "1"}, {"L": [{"NULL": True}]}, {"M": {}}]},
    "map": {"M": {"deep": {"M": {"er": {"L": []}}}, "b": {"B": b"\x01"}}}, "expires": {"N": "1900000000"},
})
client.put_item(TableName="Orders", Item={"customer": {"S": "gone"}, "number": {"N": "1"}})
client.delete_item(TableName="Orders", Key={"customer": {"S": "gone"}, "number": {"N": "1"}})
client.update_table(TableName="Orders", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "deleted-later"}}])

# Enough rows for a tree of pages, and one that is longer than several pages.
client.create_table(
    TableName="many.rows-2", AttributeDefinitions=types(id="B"), KeySchema=keys("id"), BillingMode="PAY_PER_REQUEST"
)
client.update_table(
    TableName="many.rows-2", AttributeDefinitions=types(id="B", other="S"), GlobalSecondaryIndexUpdates=[
        {"Create": {"IndexName": "added-later", "KeySchema": keys("other"), "Projection": {"ProjectionType": "ALL"}}}
    ],
)
for number in range(60):
    client.put_item(TableName="many.rows-2", Item={"id": {"B": bytes([number])}, "other": {"S": f"row {number}"}})
client.put_item(TableName="many.rows-2", Item={"id": {"B": b"long"}, "text": {"S": "long text, " * 500}})
client.create_table(
    TableName="empty", AttributeDefinitions=types(id="N"), KeySchema=keys("id"), BillingMode="PAY_PER_REQUEST"
)


def plain(value):
    """Bytes as base64, as DynamoDB's JSON has them."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


content = {}
for table in client.list_tables()["TableNames"]:
    described = client.describe_table(TableName=table)["Table"]
    content[table] = {
        "Table": {name: described[name] for name in (
            "AttributeDefinitions", "KeySchema", "LocalSecondaryIndexes", "GlobalSecondaryIndexes", "StreamSpecification",
            "BillingModeSummary", "ProvisionedThroughput",
        ) if name in described},
        "TimeToLive": client.describe_time_to_live(TableName=table)["TimeToLiveDescription"],
        "Items": plain(client.scan(TableName=table)["Items"]),
    }
print(json.dumps(content, indent=1, default=str, ensure_ascii=False))
