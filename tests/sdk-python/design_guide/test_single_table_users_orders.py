"""Users and their orders in one table: an item collection holds the user and everything of theirs."""

from support import create_table, item, names_in, put, s


def test_one_query_reads_a_user_with_all_orders(dynamodb):
    table = create_table(dynamodb, keys="PK:S,SK:S")
    for user in ("ada", "bob"):
        put(dynamodb, table, PK=f"USER#{user}", SK="PROFILE", email=f"{user}@example.org")
        for number in (1, 2, 3):
            put(dynamodb, table, PK=f"USER#{user}", SK=f"ORDER#2026-01-0{number}", amount=number * 10)

    def collection(condition="PK = :pk", **values):
        bound = {":pk": s("USER#ada")} | {f":{name}": s(value) for name, value in values.items()}
        return dynamodb.query(
            TableName=table, KeyConditionExpression=condition, ExpressionAttributeValues=bound
        )["Items"]

    assert names_in(collection(), "SK") == [
        "ORDER#2026-01-01", "ORDER#2026-01-02", "ORDER#2026-01-03", "PROFILE",
    ]
    assert names_in(collection("PK = :pk AND begins_with(SK, :o)", o="ORDER#"), "amount") == ["10", "20", "30"]
    recent = collection("PK = :pk AND SK BETWEEN :a AND :b", a="ORDER#2026-01-02", b="ORDER#2026-01-31")
    assert names_in(recent, "amount") == ["20", "30"]
    profile = dynamodb.get_item(TableName=table, Key=item(PK="USER#ada", SK="PROFILE"))["Item"]
    assert profile["email"] == s("ada@example.org")
