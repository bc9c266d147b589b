"""Everything is there after a restart, polite or not."""

import pytest

import support
from support import all_items, create_table, get, item, n, put


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_everything_survives(own_server, ending):
    dynamodb = support.client(own_server.endpoint)
    table = create_table(
        dynamodb, keys="pk:S,sk:N", gsi=[("idx", "g:S", ["a"])], lsi=[("local", "pk:S,l:S", "KEYS_ONLY")],
        Tags=[{"Key": "team", "Value": "blue"}], DeletionProtectionEnabled=True,
    )
    dynamodb.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"}
    )
    for number in range(50):
        put(dynamodb, table, pk=f"p{number % 5}", sk=number, g=f"g{number % 3}", l=str(number), a=number)
    dynamodb.delete_item(TableName=table, Key=item(pk="p0", sk=0))
    token = {"ClientRequestToken": "once", "TransactItems": [{"Update": {
        "TableName": table, "Key": item(pk="counter", sk=0), "UpdateExpression": "ADD v :one",
        "ExpressionAttributeValues": {":one": n(1)},
    }}]}
    dynamodb.transact_write_items(**token)

    def everything(dynamodb):
        described = dynamodb.describe_table(TableName=table)["Table"]
        return {
            "description": described,
            "items": sorted(map(repr, all_items(dynamodb.scan, TableName=table))),
            "global": sorted(map(repr, all_items(dynamodb.scan, TableName=table, IndexName="idx"))),
            "local": sorted(map(repr, all_items(dynamodb.scan, TableName=table, IndexName="local"))),
            "tags": dynamodb.list_tags_of_resource(ResourceArn=described["TableArn"])["Tags"],
            "ttl": dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"],
        }

    before = everything(dynamodb)
    assert len(before["items"]) == 50
    if ending == "stop":
        assert own_server.stop() == 0
    else:
        own_server.kill()
    own_server.start()
    dynamodb = support.client(own_server.endpoint)
    assert everything(dynamodb) == before
    # The token is remembered too.
    dynamodb.transact_write_items(**token)
    assert get(dynamodb, table, pk="counter", sk=0)["v"] == n(1)


def test_a_deleted_table_stays_deleted(own_server):
    dynamodb = support.client(own_server.endpoint)
    table = create_table(dynamodb)
    put(dynamodb, table, pk="a")
    dynamodb.delete_table(TableName=table)
    own_server.kill()
    own_server.start()
    dynamodb = support.client(own_server.endpoint)
    assert dynamodb.list_tables()["TableNames"] == []
    create_table(dynamodb, name=table)
    assert dynamodb.scan(TableName=table)["Items"] == []


def test_a_memory_server_writes_no_file(memory_server, tmp_path):
    dynamodb = support.client(memory_server.endpoint)
    table = create_table(dynamodb)
    put(dynamodb, table, pk="a")
    assert get(dynamodb, table, pk="a") == item(pk="a")
    assert list(tmp_path.iterdir()) == []
