"""An index with the keys swapped answers the question from the other side."""

from support import create_table, names_in, put, s


def test_many_to_many_from_both_sides(dynamodb):
    table = create_table(dynamodb, keys="PK:S,SK:S", gsi=[("inverted", "SK:S,PK:S", "ALL")])
    for student, course in [("ada", "maths"), ("ada", "logic"), ("bob", "logic"), ("eve", "logic")]:
        put(dynamodb, table, PK=f"STUDENT#{student}", SK=f"COURSE#{course}")

    def sought(name, value, **more):
        page = dynamodb.query(
            TableName=table, KeyConditionExpression=f"{name} = :v", ExpressionAttributeValues={":v": s(value)}, **more
        )
        return page["Items"]

    assert names_in(sought("PK", "STUDENT#ada"), "SK") == ["COURSE#logic", "COURSE#maths"]
    students = sought("SK", "COURSE#logic", IndexName="inverted")
    assert names_in(students, "PK") == ["STUDENT#ada", "STUDENT#bob", "STUDENT#eve"]
    students = sought("SK", "COURSE#logic", IndexName="inverted", ScanIndexForward=False)
    assert names_in(students, "PK") == ["STUDENT#eve", "STUDENT#bob", "STUDENT#ada"]
