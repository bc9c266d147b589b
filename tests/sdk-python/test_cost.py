"""`zenobe cost`: known traffic costs known dollars, at AWS's prices of us-east-1."""

import json
import os
import subprocess
import urllib.error
import urllib.request

import pytest

import streams as streaming
import support
from server import Server, binary
from streams import Clock
from support import create_table, item

READ, WRITE = 0.125 / 1e6, 0.625 / 1e6
READ_HOUR, WRITE_HOUR = 0.00013, 0.00065
MONTH_HOURS = 730


@pytest.fixture
def server(tmp_path):
    support.skip_if_aimed_elsewhere()
    server = Server(tmp_path / "data", arguments=["--driven-clock"])
    yield server
    server.kill()


def run(server, *arguments, region="us-east-1"):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "ZENOBE_"))}
    return subprocess.run(
        [binary(), "cost", "--endpoint", server.endpoint, "--region", region, *arguments],
        capture_output=True, text=True, timeout=60, env=environment,
    )


def cost(server, *arguments, **settings):
    done = run(server, "--json", *arguments, **settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def patterns(report):
    (table,) = report["tables"]
    return {(entry["index"], entry["operation"], entry["pattern"]): entry for entry in table["patterns"]}


def test_requests_cost_what_they_consume(server):
    dynamodb, clock = support.client(server.endpoint), Clock(server.endpoint)
    table = create_table(dynamodb, keys="owner:S,id:S", gsi=[("by-state", "state:S")])
    for number in range(10):
        # 1.5 KB: two units for the item, and two for its entry in the index.
        dynamodb.put_item(
            TableName=table, Item=item(owner="a", id=f"2026-{number}", state="new", data="x" * 1_500),
        )
    for consistent in [True, False]:
        dynamodb.get_item(TableName=table, Key=item(owner="a", id="2026-1"), ConsistentRead=consistent)
    # 10 items of 1.5 KB are 4 units, or 2 if the read is eventually consistent.
    answer = dynamodb.query(
        TableName=table, KeyConditionExpression="#o = :o AND begins_with(id, :y)", ScanIndexForward=False,
        ExpressionAttributeNames={"#o": "owner"}, ExpressionAttributeValues=item(**{":o": "a", ":y": "2026"}),
        ReturnConsumedCapacity="TOTAL",
    )
    query_units = answer["ConsumedCapacity"]["CapacityUnits"]
    assert answer["Count"] == 10 and query_units == 2
    dynamodb.query(
        TableName=table, IndexName="by-state", KeyConditionExpression="#s = :s", FilterExpression="attribute_exists(nothing)",
        ExpressionAttributeNames={"#s": "state"}, ExpressionAttributeValues=item(**{":s": "new"}),
    )
    clock.advance(minutes=59)
    report = cost(server)
    found = patterns(report)
    assert {key: (entry["requests"], entry["read_units"], entry["write_units"]) for key, entry in found.items()} == {
        (None, "PutItem", "write"): (10, 0, 20),
        ("by-state", "PutItem", "index write"): (0, 0, 20),
        (None, "GetItem", "key"): (2, 1.5, 0),
        (None, "Query", "partition key and sort begins_with, backward"): (1, 2, 0),
        ("by-state", "Query", "partition key, filtered"): (1, 2, 0),
    }
    assert found[None, "GetItem", "key"]["observed"]["on_demand"] == pytest.approx(1.5 * READ)
    expected = 5.5 * READ + 40 * WRITE
    assert report["observed"]["on_demand"] == pytest.approx(expected)
    # The minute of the requests and the 59 after it.
    assert report["observed_hours"] == pytest.approx(1)
    assert report["month"]["on_demand"] == pytest.approx(expected * MONTH_HOURS)
    # One unit of each kind is enough for the table and for its index.
    assert report["observed"]["provisioned"] == pytest.approx(2 * (READ_HOUR + WRITE_HOUR))
    assert report["tables"][0]["cheapest"] == "on demand"
    assert report["prices_date"] == "2024-11-01"
    # Ten items of 1.5 KB and as many entries, with 100 bytes more for each.
    described = dynamodb.describe_table(TableName=table)["Table"]
    stored = described["TableSizeBytes"] + described["GlobalSecondaryIndexes"][0]["IndexSizeBytes"] + 20 * 100
    assert report["storage"]["storage_month"] == pytest.approx(stored / 2**30 * 0.25)

    infrequent = cost(server, "--storage-class", "infrequent-access")
    assert infrequent["observed"]["on_demand"] == pytest.approx(5.5 * 0.155e-6 + 40 * 0.78e-6)
    by_operation = cost(server, "--by", "operation")["groups"]
    assert [group["name"] for group in by_operation] == ["PutItem", "Query", "GetItem"]
    assert sum(group["share"] for group in by_operation) == pytest.approx(1)


def test_a_peak_needs_capacity_and_bursts_help(server):
    dynamodb, clock = support.client(server.endpoint), Clock(server.endpoint)
    table = create_table(dynamodb)
    dynamodb.put_item(TableName=table, Item=item(pk="a"))
    clock.advance(minutes=10)
    # 400 units at once: without a burst 7 per second, with saved capacity of five minutes 2.
    dynamodb.put_item(TableName=table, Item=item(pk="a", data="x" * 399 * 1_024))
    clock.advance(minutes=5)
    (table,) = cost(server)["tables"]
    write = table["resources"][0]["write"]
    assert write["units"] == 401
    assert (write["constant_units"], write["constant_units_without_burst"], write["burst_minutes"]) == (2, 7, 1)


def test_what_was_recorded_survives_restarts(server):
    dynamodb, clock = support.client(server.endpoint), Clock(server.endpoint)
    table = create_table(dynamodb)
    dynamodb.put_item(TableName=table, Item=item(pk="a"))
    clock.advance(minutes=2)
    dynamodb.put_item(TableName=table, Item=item(pk="a"))
    assert server.stop() == 0
    server.start()
    dynamodb = support.client(server.endpoint)
    dynamodb.put_item(TableName=table, Item=item(pk="a"))
    # A driven clock starts with the real time again, which may be an hour before what was recorded.
    until = str(Clock(server.endpoint).now_s() + 24 * 60 * 60)
    report = cost(server, "--table", table, "--until", until)
    assert patterns(report)[None, "PutItem", "write"]["requests"] == 3
    dynamodb.delete_table(TableName=table)
    report = cost(server, "--table", table, "--until", until)
    assert not report["tables"][0]["exists"]
    assert patterns(report)[None, "PutItem", "write"]["write_units"] == 3
    missing = run(server, "--table", "nobody")
    assert missing.returncode == 1 and "there is no table nobody" in missing.stderr


def test_old_traffic_is_forgotten(tmp_path):
    support.skip_if_aimed_elsewhere()
    server = Server(tmp_path / "data", arguments=["--driven-clock", "--cost-retention-days", "2"])
    try:
        dynamodb, clock = support.client(server.endpoint), Clock(server.endpoint)
        table = create_table(dynamodb)
        dynamodb.put_item(TableName=table, Item=item(pk="a"))
        clock.advance(hours=24)
        dynamodb.get_item(TableName=table, Key=item(pk="a"))
        recorded = patterns(cost(server))
        assert {operation for _, operation, _ in recorded} == {"PutItem", "GetItem"}
        last = patterns(cost(server, "--last", "3h"))
        assert {operation for _, operation, _ in last} == {"GetItem"}
        clock.advance(hours=26)
        dynamodb.delete_item(TableName=table, Key=item(pk="a"))
        recorded = patterns(cost(server, "--since", "0"))
        assert {operation for _, operation, _ in recorded} == {"GetItem", "DeleteItem"}
    finally:
        server.kill()


def test_reads_of_streams_are_counted(server):
    dynamodb, clock = support.client(server.endpoint), Clock(server.endpoint)
    table = create_table(dynamodb, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    dynamodb.put_item(TableName=table, Item=item(pk="a"))
    client = streaming.client(server.endpoint)
    arn = dynamodb.describe_table(TableName=table)["Table"]["LatestStreamArn"]
    shard = client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = client.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    for _ in range(5):
        client.get_records(ShardIterator=iterator)
    clock.advance(minutes=59)
    report = cost(server)
    assert report["stream_reads"] == 5
    assert report["stream_reads_month"] == pytest.approx(5 / 100_000 * 0.02 * MONTH_HOURS)
    free = cost(server, "--free-tier")["free_tier"]
    assert free["stream_reads_month"] == pytest.approx(report["stream_reads_month"])


def test_prices_are_those_of_the_region_or_of_a_file(server, tmp_path):
    dynamodb = support.client(server.endpoint)
    table = create_table(dynamodb)
    dynamodb.put_item(TableName=table, Item=item(pk="a"))
    unknown = run(server, region="mars-north-1")
    assert unknown.returncode == 1
    assert "known are us-east-1, us-east-2, us-west-2" in unknown.stderr and "--prices" in unknown.stderr
    numbers = {
        "read-request-units-million": 1, "write-request-units-million": 2, "read-capacity-unit-hour": 3,
        "write-capacity-unit-hour": 4, "storage-gb-month": 5,
    }
    single = ["point-in-time-recovery-gb-month", "backup-gb-month", "restore-gb", "export-gb", "import-gb", "stream-reads-100k"]
    lines = ['date = "2030-01-01"', "[regions.mars-north-1]", *(f"{name} = 0.5" for name in single)]
    for table_class in ["standard", "infrequent-access"]:
        lines += [f"[regions.mars-north-1.{table_class}]", *(f"{name} = {price}" for name, price in numbers.items())]
    prices = tmp_path / "prices.toml"
    prices.write_text("\n".join(lines))
    report = cost(server, "--prices", str(prices), region="mars-north-1")
    assert report["observed"]["on_demand"] == pytest.approx(2e-6)
    assert (report["prices_date"], report["region"]) == ("2030-01-01", "mars-north-1")
    prices.write_text("\n".join(lines[:-1]))
    broken = run(server, "--prices", str(prices), region="mars-north-1")
    assert "there is no `regions.mars-north-1.infrequent-access.storage-gb-month`" in broken.stderr


def test_a_report_for_people(server):
    dynamodb = support.client(server.endpoint)
    table = create_table(dynamodb, name="Orders")
    nothing = run(server)
    assert nothing.returncode == 0 and nothing.stdout.startswith("No traffic has been recorded between")
    dynamodb.put_item(TableName=table, Item=item(pk="a"))
    dynamodb.scan(TableName=table)
    text = run(server).stdout
    assert "Prices of us-east-1 in US dollars as of 2024-11-01" in text
    assert "1 minutes observed, extrapolated to a month of 730 hours" in text
    lines = text.splitlines()
    money = next(number for number, line in enumerate(lines) if line.startswith("WHERE THE MONEY GOES, BY PATTERN"))
    assert lines[money + 1].startswith("Orders PutItem") and "71.4%" in lines[money + 1]
    assert lines[money + 2].startswith("Orders Scan") and "28.6%" in lines[money + 2]


def test_nothing_is_recorded_if_nobody_wants_it(tmp_path):
    support.skip_if_aimed_elsewhere()
    for arguments, expected in [
        (["--cost-retention-days", "0"], "--cost-retention-days"),
        (["--throughput", "off"], None),
    ]:
        server = Server(arguments=arguments)
        try:
            dynamodb = support.client(server.endpoint)
            dynamodb.put_item(TableName=create_table(dynamodb), Item=item(pk="a"))
            done = run(server)
            if expected:
                assert done.returncode == 1 and expected in done.stderr
            else:
                assert "The server meters no table" in done.stdout
        finally:
            server.kill()


def test_each_caller_sees_its_own_tables(scoped_server):
    one, two = (support.client(scoped_server.endpoint, region) for region in ["us-east-1", "us-west-2"])
    first, second = create_table(one), create_table(two)
    one.put_item(TableName=first, Item=item(pk="a"))
    two.put_item(TableName=second, Item=item(pk="a"))
    path = f"{scoped_server.endpoint}/_zenobe/cost"
    with urllib.request.urlopen(path) as answer:
        names = json.load(answer)["tables"]
    assert first not in names and second not in names
    for wrong in ["?since_ms=x", "?colour=red", "?since_ms=7200000&until_ms=3600000"]:
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(path + wrong)
        assert raised.value.code == 400
