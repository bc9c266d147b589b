"""An index that holds only the items with a mark: open orders, and nothing else."""

from support import all_items, create_table, item, names_in, put


def test_only_marked_items_are_in_the_index(dynamodb):
    table = create_table(dynamodb, keys="pk:S", gsi=[("open-orders", "open:S,placed:S", "KEYS_ONLY")])
    for number in range(20):
        mark = {"open": "yes"} if number % 5 == 0 else {}
        put(dynamodb, table, pk=f"order{number:02}", placed=f"2026-01-{number + 1:02}", **mark)

    def open_orders():
        return sorted(names_in(all_items(dynamodb.scan, TableName=table, IndexName="open-orders"), "pk"))

    assert open_orders() == ["order00", "order05", "order10", "order15"]
    # Closing an order removes the mark, and with it the entry.
    dynamodb.update_item(
        TableName=table, Key=item(pk="order05"), UpdateExpression="REMOVE #open",
        ExpressionAttributeNames={"#open": "open"},
    )
    assert open_orders() == ["order00", "order10", "order15"]
    assert dynamodb.scan(TableName=table, Select="COUNT")["Count"] == 20
