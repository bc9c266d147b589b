"""Numbers inside string keys sort as text: padded with zeros they sort as numbers too."""

from support import create_table, names_in, put, s


def test_padding_gives_numeric_order(dynamodb):
    table = create_table(dynamodb, keys="game:S,rank_key:S")
    scores = [7, 1200, 45, 300, 9, 10]
    for score in scores:
        put(dynamodb, table, game="padded", rank_key=f"SCORE#{score:010}")
        put(dynamodb, table, game="plain", rank_key=f"SCORE#{score}")

    def keys(game, **more):
        page = dynamodb.query(
            TableName=table, KeyConditionExpression="game = :g", ExpressionAttributeValues={":g": s(game)}, **more
        )
        return [int(key.split("#")[1]) for key in names_in(page["Items"], "rank_key")]

    assert keys("padded") == sorted(scores)
    assert keys("padded", ScanIndexForward=False, Limit=3) == [1200, 300, 45]
    assert keys("plain") == [10, 1200, 300, 45, 7, 9]
