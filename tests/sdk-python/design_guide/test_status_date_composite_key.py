"""Status and date joined in one index key: filtered and ordered by the index itself."""

from support import create_table, item, names_in, put, s


def test_status_and_period_in_one_condition(dynamodb):
    table = create_table(dynamodb, keys="pk:S", gsi=[("by-status", "customer:S,status_date:S", "ALL")])
    orders = [
        ("o1", "PENDING", "2026-01-05"), ("o2", "PENDING", "2026-02-01"), ("o3", "SHIPPED", "2026-01-07"),
        ("o4", "SHIPPED", "2026-03-01"), ("o5", "PENDING", "2026-02-28"),
    ]
    for order, status, date in orders:
        put(dynamodb, table, pk=order, customer="ada", status_date=f"{status}#{date}")

    def sought(low, high):
        page = dynamodb.query(
            TableName=table, IndexName="by-status",
            KeyConditionExpression="customer = :c AND status_date BETWEEN :lo AND :hi",
            ExpressionAttributeValues={":c": s("ada"), ":lo": s(low), ":hi": s(high)},
        )
        assert page["Count"] == page["ScannedCount"]
        return names_in(page["Items"], "pk")

    assert sought("PENDING#2026-02-01", "PENDING#2026-02-31") == ["o2", "o5"]
    assert sought("SHIPPED#", "SHIPPED#9999") == ["o3", "o4"]
    dynamodb.update_item(
        TableName=table, Key=item(pk="o2"), UpdateExpression="SET status_date = :v",
        ConditionExpression="begins_with(status_date, :pending)",
        ExpressionAttributeValues={":v": s("SHIPPED#2026-02-02"), ":pending": s("PENDING#")},
    )
    assert sought("PENDING#2026-02-01", "PENDING#2026-02-31") == ["o5"]
    assert sought("SHIPPED#", "SHIPPED#9999") == ["o3", "o2", "o4"]
