"""PartiQL through boto3: statements, batches and transactions, their errors and their pages."""

import pytest

import streams
import support
from server import Server
from support import condition_failed, create_table, invalid, missing_resource, n, refused, s, unique_name

W = "Statement wasn't well formed, can't be processed: "


@pytest.fixture(scope="module")
def table(dynamodb):
    return create_table(
        dynamodb, keys="pk:S,sk:N", lsi=[("by-a", "pk:S,a:S", "KEYS_ONLY")], gsi=[("by-g", "g:S,sk:N")])


class Statements:
    def __init__(self, dynamodb, table):
        self.dynamodb, self.table = dynamodb, table

    def __call__(self, statement, *parameters, **more):
        if parameters:
            more["Parameters"] = list(parameters)
        return self.dynamodb.execute_statement(Statement=statement.replace("TABLE", f'"{self.table}"'), **more)

    def rows(self, statement, *parameters, **more):
        return self(statement, *parameters, **more)["Items"]

    def pages(self, statement, *parameters, **more):
        """All pages of a statement, by its tokens."""
        pages, token = [], {}
        while True:
            page = self(statement, *parameters, **more, **token)
            pages.append(page["Items"])
            if "NextToken" not in page:
                return pages
            token = {"NextToken": page["NextToken"]}


@pytest.fixture
def run(dynamodb, table):
    return Statements(dynamodb, table)


def test_an_item_lives_in_statements(run, key):
    inserted = run("INSERT INTO TABLE VALUE {'pk': ?, 'sk': 1, 'n': 5, 'tags': <<'a', 'b'>>, 'l': [1, {'x': null}]}", s(key))
    assert inserted["Items"] == []
    with refused("DuplicateItemException", "Duplicate primary key exists in table"):
        run("INSERT INTO TABLE VALUE {'pk': ?, 'sk': 1}", s(key))
    updated = run.rows(
        "UPDATE TABLE SET n = n + 1, tags = set_delete(tags, <<'a'>>), l = list_append(l, ?) REMOVE absent "
        "WHERE pk = ? AND sk = 1 AND n = 5 RETURNING MODIFIED NEW *", {"L": [s("end")]}, s(key))
    assert updated == [{"n": n(6), "tags": {"SS": ["b"]}, "l": {"L": [n(1), {"M": {"x": {"NULL": True}}}, s("end")]}}]
    assert run.rows("SELECT n, l[1].x FROM TABLE WHERE pk = ? AND sk = 1", s(key)) == [{"n": n(6), "x": {"NULL": True}}]
    with condition_failed():
        run("UPDATE TABLE SET n = 0 WHERE pk = ? AND sk = 1 AND n = 5", s(key))
    with condition_failed() as caught:
        run("DELETE FROM TABLE WHERE pk = ? AND sk = 1 AND n = 5", s(key), ReturnValuesOnConditionCheckFailure="ALL_OLD")
    assert caught.value.response["Item"]["n"] == n(6)
    [deleted] = run.rows("DELETE FROM TABLE WHERE pk = ? AND sk = 1 RETURNING ALL OLD *", s(key))
    assert deleted["n"] == n(6)
    assert run.rows("DELETE FROM TABLE WHERE pk = ? AND sk = 1 RETURNING ALL OLD *", s(key)) == []


def test_pages_go_through_several_partitions(dynamodb, table, run, key):
    for partition in "ab":
        for number in range(5):
            item = {"pk": s(key + partition), "sk": n(number), "g": s(key), "f": n(number % 2)}
            dynamodb.put_item(TableName=table, Item=item)
    statement = "SELECT sk FROM TABLE WHERE pk IN [?, ?] AND f = 1"
    both = [s(key + "b"), s(key + "a")]
    for limit in [1, 3, 4, 100]:
        pages = run.pages(statement, *both, Limit=limit)
        assert [row["sk"]["N"] for page in pages for row in page] == ["1", "3", "1", "3"]
        assert all(len(page) <= limit for page in pages)
    descending = run.rows("SELECT sk FROM TABLE WHERE pk = ? AND sk BETWEEN 1 AND 3 ORDER BY sk DESC", s(key + "a"))
    assert [row["sk"]["N"] for row in descending] == ["3", "2", "1"]
    index = run.pages('SELECT pk, sk FROM TABLE."by-g" WHERE g = ?', s(key), Limit=4)
    assert [len(page) for page in index] == [4, 4, 2]
    token = run(statement, *both, Limit=1)["NextToken"]
    with invalid("NextToken does not match request"):
        run(statement, *reversed(both), NextToken=token)
    with invalid("Invalid NextToken"):
        run(statement, *both, NextToken="x" + token[1:])


def test_the_plan_is_told_and_capacity_counts_what_was_read(run, key):
    for number in range(3):
        run("INSERT INTO TABLE VALUE {'pk': ?, 'sk': ?, 'n': ?}", s(key), n(number), n(number))
    support.skip_if_aimed_elsewhere()

    def check(statement, plan, units, **more):
        answer = run(statement, s(key), ReturnConsumedCapacity="TOTAL", **more)
        headers = answer["ResponseMetadata"]["HTTPHeaders"]
        assert headers["x-zenobe-plan"].startswith(plan), headers["x-zenobe-plan"]
        assert answer["ConsumedCapacity"]["CapacityUnits"] == units

    check("SELECT * FROM TABLE WHERE pk = ? AND sk = 1", "GetItem; ", 0.5)
    check("SELECT * FROM TABLE WHERE pk = ? AND sk = 1", "GetItem; ", 1, ConsistentRead=True)
    check("SELECT * FROM TABLE WHERE pk = ? AND n = 9", "Query; ", 0.5)
    check("SELECT * FROM TABLE WHERE pk = ? AND sk IN [0, 1, 2]", "GetItem; ", 1.5)
    check("SELECT * FROM TABLE WHERE begins_with(pk, ?) AND n = 9", "Scan; ", 2)


def test_faults_have_their_texts(run):
    with invalid(W + "Unexpected term"):
        run("SELECT * FROM TABLE WHERE")
    with invalid("Unrecognized function: f at 2:7:1"):
        run("SELECT * FROM TABLE\nWHERE f(1)")
    with invalid("Where clause does not contain a mandatory equality on all key attributes"):
        run("UPDATE TABLE SET a = 'x' WHERE pk = 'x'")
    with invalid("Number of parameters in request and statement don't match."):
        run("SELECT * FROM TABLE WHERE pk = ?")
    with missing_resource():
        run(f"SELECT * FROM \"{unique_name('absent')}\"")


def test_a_batch_answers_each_statement(dynamodb, table, key):
    def batch(*statements, **more):
        statements = [{"Statement": text.replace("TABLE", f'"{table}"'), "Parameters": [s(key)]} for text in statements]
        return dynamodb.batch_execute_statement(Statements=statements, **more)

    written = batch(
        "INSERT INTO TABLE VALUE {'pk': ?, 'sk': 1}", "INSERT INTO TABLE VALUE {'pk': ?, 'sk': 2}",
        "UPDATE TABLE SET n = 1 WHERE pk = ? AND sk = 3", "UPDATE TABLE SET n = 1 WHERE pk = ?")["Responses"]
    assert written == [
        {"TableName": table}, {"TableName": table},
        {"TableName": table, "Error": {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}},
        {"Error": {"Code": "ValidationError",
                   "Message": "Where clause does not contain a mandatory equality on all key attributes"}},
    ]
    read = batch("SELECT * FROM TABLE WHERE pk = ? AND sk = 1", "SELECT * FROM TABLE WHERE pk = ? AND sk = 9",
                 ReturnConsumedCapacity="TOTAL")
    assert read["Responses"] == [{"TableName": table, "Item": {"pk": s(key), "sk": n(1)}}, {"TableName": table}]
    assert read["ConsumedCapacity"] == [{"TableName": table, "CapacityUnits": 1.0}]
    with invalid("Provided list of item keys contains duplicates"):
        batch("SELECT * FROM TABLE WHERE pk = ? AND sk = 1", "SELECT * FROM TABLE WHERE pk = ? AND sk = 1.0")


def test_a_transaction_is_all_or_nothing(dynamodb, table, run, key):
    def transaction(*statements, **more):
        statements = [{"Statement": text.replace("TABLE", f'"{table}"'), "Parameters": [s(key)]} for text in statements]
        return dynamodb.execute_transaction(TransactStatements=statements, **more)

    cancelled = "Transaction cancelled, please refer cancellation reasons for specific reasons"
    with refused("TransactionCanceledException", f"{cancelled} [None, ConditionalCheckFailed]") as caught:
        transaction("INSERT INTO TABLE VALUE {'pk': ?, 'sk': 1}",
                    "EXISTS(SELECT * FROM TABLE WHERE pk = ? AND sk = 2 AND n = 1)")
    assert caught.value.response["CancellationReasons"][0] == {"Code": "None"}
    assert run.rows("SELECT * FROM TABLE WHERE pk = ?", s(key)) == []
    writes = ["INSERT INTO TABLE VALUE {'pk': ?, 'sk': 1, 'n': 1}", "INSERT INTO TABLE VALUE {'pk': ?, 'sk': 2}"]
    token = unique_name("token")[-36:]
    for _ in range(2):
        transaction(*writes, ClientRequestToken=token)
    with refused("IdempotentParameterMismatchException",
                 "The request uses the same client token as a previous, but non-identical request. Do not reuse a "
                 "client token with different requests, unless the requests are identical"):
        transaction(writes[0], ClientRequestToken=token)
    answer = transaction("SELECT n FROM TABLE WHERE pk = ? AND sk = 1", "SELECT n FROM TABLE WHERE pk = ? AND sk = 9")
    assert answer["Responses"] == [{"Item": {"n": n(1)}}, {}]


def test_statements_leave_records_in_streams_and_items_expire(driven):
    dynamodb = driven.dynamodb
    table, arn = streams.create_table(dynamodb, keys="pk:S")
    dynamodb.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"})
    until = driven.clock.now_s() + 60
    run = Statements(dynamodb, table)
    run("INSERT INTO TABLE VALUE {'pk': 'a', 'until': ?}", n(until))
    run("UPDATE TABLE SET n = 1 WHERE pk = 'a'")
    run("UPDATE TABLE SET n = 1 WHERE pk = 'a'")
    run("INSERT INTO TABLE VALUE {'pk': 'b'}")
    run("DELETE FROM TABLE WHERE pk = 'b'")
    driven.clock.advance(seconds=120)
    assert run.rows("SELECT * FROM TABLE WHERE pk = 'a'") == []
    records = streams.records(driven.streams, arn)
    told = [(record["eventName"], record["dynamodb"]["Keys"]["pk"]["S"], "userIdentity" in record) for record in records]
    assert sorted(told) == sorted([
        ("INSERT", "a", False), ("MODIFY", "a", False), ("INSERT", "b", False), ("REMOVE", "b", False),
        ("REMOVE", "a", True)])


def test_scans_can_be_refused():
    support.skip_if_aimed_elsewhere()
    server = Server(arguments=["--refuse-scans"])
    try:
        dynamodb = support.client(server.endpoint)
        table = create_table(dynamodb, keys="pk:S")
        text = (f"The statement would scan all of table {table}, and this server runs with --refuse-scans: give the "
                "partition key with = or IN in the WHERE clause, or read an index whose partition key is known")
        with refused("AccessDeniedException", text):
            dynamodb.execute_statement(Statement=f'SELECT * FROM "{table}" WHERE n = 1')
        assert dynamodb.execute_statement(Statement=f"SELECT * FROM \"{table}\" WHERE pk = 'a'")["Items"] == []
    finally:
        server.kill()
