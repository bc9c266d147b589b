"""CloudWatch's own API on the server: metrics of tables, metrics of the caller, and alarms, in all three protocols."""

import datetime
import urllib.request

import boto3
import botocore.exceptions
import botocore.session
import pytest

import support
from server import Server
from support import create_table, get, put

NAMESPACE = "AWS/DynamoDB"
PROTOCOLS = ["smithy-rpc-v2-cbor", "json", "query"]


def cloudwatch(endpoint, protocol=None, **identity):
    """A client of one protocol, or of the one that botocore chooses."""
    session = botocore.session.Session()
    if protocol:
        loader = session.get_component("data_loader")
        model = loader.load_service_model("cloudwatch", "service-2")
        model["metadata"] |= {"protocol": protocol, "protocols": [protocol]}
        load = loader.load_service_model
        loader.load_service_model = lambda name, *rest, **more: (
            model if (name, rest[:1]) == ("cloudwatch", ("service-2",)) else load(name, *rest, **more)
        )
    client = boto3.session.Session(botocore_session=session).client(
        "cloudwatch", config=support.CONFIG, **support.connection(endpoint, support.REGION) | identity
    )
    if protocol:
        assert client.meta.service_model.resolved_protocol == protocol
    return client


def dimensions(**values):
    return [{"Name": name, "Value": value} for name, value in values.items()]


def at(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def statistics(client, clock, name, *statistic, namespace=NAMESPACE, minutes=10, period=60, **values):
    """The data points of the last minutes, oldest first, without their times."""
    now = clock.now_s()
    extended = statistic[0].startswith("p")
    found = client.get_metric_statistics(
        Namespace=namespace, MetricName=name, Dimensions=dimensions(**values), Period=period,
        StartTime=at(now - minutes * 60), EndTime=at(now + 60),
        **{"ExtendedStatistics" if extended else "Statistics": list(statistic)},
    )
    assert found["Label"] == name
    points = sorted(found["Datapoints"], key=lambda point: point["Timestamp"])
    if extended:
        return [[point["ExtendedStatistics"][name] for name in statistic] for point in points]
    return [[point[name] for name in statistic] for point in points]


@pytest.fixture
def at_minute(driven):
    """The server with its clock at the beginning of a minute."""
    now_ms = driven.clock.now_ms()
    driven.clock.post({"set_ms": now_ms - now_ms % 60_000 + 60_000})
    return driven


def client_of(driven, protocol=None):
    return cloudwatch(driven.server.endpoint, protocol)


def test_statements_have_metrics_by_verb_and_operation_type(at_minute):
    dynamodb, clock = at_minute.dynamodb, at_minute.clock
    table = create_table(dynamodb, keys="pk:S")
    execute = lambda statement: {"Statement": statement.format(f'"{table}"')}
    statements = [
        "INSERT INTO {} VALUE {{'pk': 'a'}}",
        "UPDATE {} SET n=1 WHERE pk='a'",
        "SELECT * FROM {} WHERE pk='a'",
        "SELECT * FROM {}",
        "DELETE FROM {} WHERE pk='a'",
    ]
    for statement in statements:
        dynamodb.execute_statement(**execute(statement))
    dynamodb.batch_execute_statement(Statements=[execute("SELECT * FROM {} WHERE pk='a'")])
    dynamodb.execute_transaction(TransactStatements=[execute("INSERT INTO {} VALUE {{'pk': 'b'}}")])
    clock.advance(seconds=60)
    client = client_of(at_minute)

    def requests(operation, **more):
        points = statistics(
            client, clock, "SuccessfulRequestLatency", "SampleCount", TableName=table, Operation=operation, **more
        )
        return sum(count for [count] in points)

    assert requests("ExecuteStatement") == 5
    verbs = ["PartiQLInsert", "PartiQLUpdate", "PartiQLSelect", "PartiQLDelete"]
    assert [requests("ExecuteStatement", Verb=verb) for verb in verbs] == [1, 1, 2, 1]
    for operation, read, written in [("BatchExecuteStatement", 1, 0), ("ExecuteTransaction", 0, 1)]:
        assert requests(operation, OperationType="Read") == read
        assert requests(operation, OperationType="Write") == written


def test_what_requests_did_becomes_metrics(at_minute):
    dynamodb, clock = at_minute.dynamodb, at_minute.clock
    table = create_table(
        dynamodb, keys="pk:S", gsi=[("by-g", "g:S", "KEYS_ONLY")],
    )
    for number in range(5):
        put(dynamodb, table, pk=f"p{number}", g="g")
    for _ in range(10):
        get(dynamodb, table, pk="p1")
    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException):
        dynamodb.put_item(
            TableName=table, Item={"pk": {"S": "p1"}}, ConditionExpression="attribute_not_exists(pk)"
        )
    with pytest.raises(botocore.exceptions.ClientError):
        dynamodb.get_item(TableName="missing-table", Key={"pk": {"S": "x"}})
    dynamodb.query(
        TableName=table, KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": "p1"}}
    )
    clock.advance(seconds=60)
    client = client_of(at_minute)

    def sums(name, **values):
        return statistics(client, clock, name, "Sum", **values)

    # `get` reads consistently: one unit each; the query half a unit.
    [[reads, count]] = statistics(client, clock, "ConsumedReadCapacityUnits", "Sum", "SampleCount", TableName=table)
    assert (reads, count) == (10.5, 11.0)
    # The condition that failed consumed a unit, too.
    assert sums("ConsumedWriteCapacityUnits", TableName=table) == [[6.0]]
    of_index = statistics(
        client, clock, "ConsumedWriteCapacityUnits", "Sum", "SampleCount", "Maximum",
        TableName=table, GlobalSecondaryIndexName="by-g",
    )
    assert of_index == [[5.0, 5.0, 1.0]]
    assert sums("ConditionalCheckFailedRequests", TableName=table) == [[1.0]]
    assert sums("UserErrors")[-1][0] >= 1.0
    assert sums("ReturnedItemCount", TableName=table, Operation="Query") == [[1.0]]
    [[low, mean, high, count]] = statistics(
        client, clock, "SuccessfulRequestLatency", "Minimum", "Average", "Maximum", "SampleCount",
        TableName=table, Operation="GetItem",
    )
    assert 0 < low <= mean <= high and count == 10.0
    [[p50, p99]] = statistics(
        client, clock, "SuccessfulRequestLatency", "p50", "p99.9", TableName=table, Operation="GetItem"
    )
    assert low <= p50 <= p99 <= high
    assert sums("SystemErrors", TableName=table, Operation="GetItem") == []

    pages = client.get_paginator("list_metrics").paginate(
        Namespace=NAMESPACE, Dimensions=[{"Name": "TableName", "Value": table}], RecentlyActive="PT3H"
    )
    listed = [metric for page in pages for metric in page["Metrics"]]
    latency = {
        "Namespace": NAMESPACE, "MetricName": "SuccessfulRequestLatency",
        "Dimensions": dimensions(Operation="GetItem", TableName=table),
    }
    assert latency in listed


def test_throttling_and_provisioned_units(at_minute):
    dynamodb, clock = at_minute.dynamodb, at_minute.clock
    table = create_table(
        dynamodb, keys="pk:S", ProvisionedThroughput={"ReadCapacityUnits": 3, "WriteCapacityUnits": 2},
        Tags=[{"Key": "zenobe:throughput", "Value": "enforce"}],
    )
    refused = 0
    for number in range(6):
        try:
            put(dynamodb, table, pk="p", data="x" * 2_000)
        except dynamodb.exceptions.ProvisionedThroughputExceededException:
            refused += 1
    assert refused > 0
    clock.advance(seconds=300)
    client = client_of(at_minute)
    assert statistics(client, clock, "WriteThrottleEvents", "Sum", TableName=table) == [[refused]]
    assert statistics(client, clock, "WriteProvisionedThroughputThrottleEvents", "Sum", TableName=table) == [[refused]]
    assert statistics(client, clock, "ThrottledRequests", "Sum", TableName=table, Operation="PutItem") == [[refused]]
    # A request that was refused consumed nothing, and is no sample.
    consumed = statistics(client, clock, "ConsumedWriteCapacityUnits", "SampleCount", "Average", TableName=table)
    assert consumed == [[6 - refused, 2.0]]
    assert statistics(client, clock, "ProvisionedReadCapacityUnits", "Maximum", TableName=table)[-1] == [3.0]
    assert statistics(client, clock, "ProvisionedWriteCapacityUnits", "Average", TableName=table)[-1] == [2.0]
    assert statistics(client, clock, "AccountMaxReads", "Maximum")[-1] == [80_000.0]


def test_expired_items_are_counted(at_minute):
    dynamodb, clock = at_minute.dynamodb, at_minute.clock
    table = create_table(dynamodb, keys="pk:S")
    dynamodb.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"}
    )
    for number in range(3):
        put(dynamodb, table, pk=str(number), expires=clock.now_s() + 5)
    clock.advance(seconds=60)
    clock.advance(seconds=60)
    found = statistics(client_of(at_minute), clock, "TimeToLiveDeletedItemCount", "Sum", TableName=table)
    assert sum(value for [value] in found) == 3.0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_says_the_same(at_minute, protocol):
    clock, client = at_minute.clock, client_of(at_minute, protocol)
    now = at(clock.now_s())
    client.put_metric_data(Namespace="Shop", MetricData=[
        {"MetricName": "orders", "Dimensions": dimensions(city="Basel & <Bern>"), "Value": 3, "Timestamp": now},
        {"MetricName": "orders", "Dimensions": dimensions(city="Basel & <Bern>"), "Timestamp": now,
         "Values": [1, 2.5, 40], "Counts": [10, 1, 1], "Unit": "Count"},
        {"MetricName": "sizes", "Timestamp": now, "Unit": "Bytes",
         "StatisticValues": {"SampleCount": 4, "Sum": 10, "Minimum": 1, "Maximum": 4}},
    ])
    metric = {"Namespace": "Shop", "MetricName": "orders", "Dimensions": dimensions(city="Basel & <Bern>")}
    assert client.list_metrics(Namespace="Shop", MetricName="orders")["Metrics"] == [metric]
    queries = [
        {"Id": "m1", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}, "Label": "ü ${PROP('Dim.city')}"},
        {"Id": "m2", "MetricStat": {
            "Metric": {"Namespace": "Shop", "MetricName": "sizes"}, "Period": 60, "Stat": "Average", "Unit": "Bytes",
        }, "ReturnData": False},
        {"Id": "e1", "Expression": "m1 / m2 * 100"},
    ]
    found = client.get_metric_data(
        MetricDataQueries=queries, StartTime=now, EndTime=now + datetime.timedelta(minutes=5)
    )
    first, second = found["MetricDataResults"]
    assert (first["Id"], first["Label"], first["StatusCode"]) == ("m1", "ü Basel & <Bern>", "Complete")
    assert (first["Timestamps"], first["Values"]) == ([now], [55.5])
    assert second["Values"] == [55.5 / 2.5 * 100]
    points = client.get_metric_statistics(
        **metric, StartTime=now, EndTime=now + datetime.timedelta(minutes=5), Period=60,
        ExtendedStatistics=["p50", "p100"], Unit="Count",
    )["Datapoints"]
    [point] = points
    assert point["Unit"] == "Count" and point["Timestamp"] == now
    assert point["ExtendedStatistics"]["p100"] == 40.0
    assert abs(point["ExtendedStatistics"]["p50"] - 1) < 0.06

    client.put_metric_alarm(
        AlarmName="many orders", AlarmDescription="é", ActionsEnabled=False, **metric, Statistic="Sum", Period=60,
        EvaluationPeriods=1, Threshold=50.5, ComparisonOperator="GreaterThanThreshold",
        AlarmActions=["arn:aws:sns:us-east-1:000000000000:topic"], Tags=[{"Key": "a", "Value": "b"}],
    )
    [alarm] = client.describe_alarms()["MetricAlarms"]
    assert (alarm["StateValue"], alarm["Threshold"]) == ("INSUFFICIENT_DATA", 50.5)
    assert (alarm["Dimensions"], alarm["ActionsEnabled"]) == (metric["Dimensions"], False)
    clock.advance(seconds=60)
    [alarm] = client.describe_alarms(StateValue="ALARM")["MetricAlarms"]
    assert alarm["StateReason"].startswith("Threshold Crossed: 1 out of the last 1 datapoints [55.5 (")
    assert alarm["StateUpdatedTimestamp"] == at(clock.now_s())
    arn = alarm["AlarmArn"]
    client.tag_resource(ResourceARN=arn, Tags=[{"Key": "c", "Value": ""}])
    client.untag_resource(ResourceARN=arn, TagKeys=["a"])
    assert client.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "c", "Value": ""}]
    history = client.describe_alarm_history(AlarmName="many orders", HistoryItemType="StateUpdate")
    summaries = [item["HistorySummary"] for item in history["AlarmHistoryItems"]]
    assert summaries == ["Alarm updated from INSUFFICIENT_DATA to ALARM"]
    with pytest.raises(client.exceptions.ResourceNotFound) as raised:
        client.set_alarm_state(AlarmName="missing", StateValue="OK", StateReason="test")
    assert raised.value.response["Error"]["Code"] == "ResourceNotFound"
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
    with pytest.raises(client.exceptions.InvalidParameterValueException) as raised:
        client.put_metric_data(Namespace="AWS/Mine", MetricData=[{"MetricName": "m", "Value": 1}])
    assert raised.value.response["Error"]["Code"] == "InvalidParameterValue"
    with pytest.raises(client.exceptions.InvalidParameterValueException):
        client.put_metric_data(Namespace="Mine", MetricData=[{"MetricName": "m", "Value": float("nan")}])
    with pytest.raises(client.exceptions.MissingRequiredParameterException) as raised:
        client.put_metric_data(Namespace="Mine")
    assert raised.value.response["Error"]["Code"] == "MissingParameter"
    with pytest.raises(botocore.exceptions.ClientError) as raised:
        client.list_dashboards()
    assert raised.value.response["Error"]["Code"] == "InvalidAction"
    client.delete_alarms(AlarmNames=["many orders"])
    assert client.describe_alarms()["MetricAlarms"] == []


def test_an_alarm_on_a_table(at_minute):
    dynamodb, clock, client = at_minute.dynamodb, at_minute.clock, client_of(at_minute)
    table = create_table(dynamodb, keys="pk:S")
    client.put_metric_alarm(
        AlarmName="writes", Namespace=NAMESPACE, MetricName="ConsumedWriteCapacityUnits",
        Dimensions=dimensions(TableName=table), Statistic="Sum", Period=60, EvaluationPeriods=2,
        DatapointsToAlarm=2, Threshold=3, ComparisonOperator="GreaterThanOrEqualToThreshold",
        TreatMissingData="breaching",
    )

    def state_after(writes):
        for number in range(writes):
            put(dynamodb, table, pk=str(number))
        clock.advance(seconds=60)
        [alarm] = client.describe_alarms(AlarmNames=["writes"])["MetricAlarms"]
        return alarm["StateValue"]

    # Missing data of DynamoDB is always ignored, as on AWS.
    assert state_after(writes=0) == "INSUFFICIENT_DATA"
    assert state_after(writes=1) == "OK"
    assert state_after(writes=5) == "OK"
    assert state_after(writes=5) == "ALARM"
    assert [state_after(writes=0) for _ in range(4)] == ["ALARM"] * 4
    assert state_after(writes=1) == "OK"
    assert "zenobe_alarm_transitions_total{state=\"ALARM\"} 1" in metrics_of(at_minute)


def metrics_of(driven):
    with urllib.request.urlopen(driven.server.endpoint + "/metrics") as response:
        return response.read().decode()


def test_an_alarm_over_an_expression(at_minute):
    clock, client = at_minute.clock, client_of(at_minute)

    def query(id, name):
        metric = {"Namespace": "Shop", "MetricName": name}
        return {"Id": id, "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}, "ReturnData": False}

    client.put_metric_alarm(
        AlarmName="errors", EvaluationPeriods=1, Threshold=10, ComparisonOperator="GreaterThanThreshold",
        Metrics=[query("errors", "errors"), query("calls", "calls"), {"Id": "share", "Expression": "errors/calls*100"}],
    )
    data = [{"MetricName": "errors", "Value": 2}, {"MetricName": "calls", "Value": 10}]
    client.put_metric_data(Namespace="Shop", MetricData=data)
    clock.advance(seconds=60)
    [alarm] = client.describe_alarms()["MetricAlarms"]
    assert alarm["StateValue"] == "ALARM"
    assert [query["Id"] for query in alarm["Metrics"]] == ["errors", "calls", "share"]
    # It is based on no metric alone.
    assert client.describe_alarms_for_metric(Namespace="Shop", MetricName="calls")["MetricAlarms"] == []


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_metrics_and_alarms_survive_a_restart(own_server, ending):
    client = cloudwatch(own_server.endpoint)
    client.put_metric_data(Namespace="Shop", MetricData=[{"MetricName": "orders", "Value": 7}])
    client.put_metric_alarm(
        AlarmName="orders", Namespace="Shop", MetricName="orders", Statistic="Sum", Period=60, EvaluationPeriods=1,
        Threshold=1, ComparisonOperator="LessThanThreshold",
    )
    client.set_alarm_state(AlarmName="orders", StateValue="ALARM", StateReason="by hand")
    dynamodb = support.client(own_server.endpoint)
    table = create_table(dynamodb, keys="pk:S")
    put(dynamodb, table, pk="a")
    if ending == "stop":
        assert own_server.stop() == 0
    else:
        own_server.kill()
    own_server.start()
    client = cloudwatch(own_server.endpoint)
    now = datetime.datetime.now(datetime.timezone.utc)
    span = {"StartTime": now - datetime.timedelta(minutes=10), "EndTime": now + datetime.timedelta(minutes=1)}
    found = client.get_metric_statistics(
        Namespace="Shop", MetricName="orders", Period=3600, Statistics=["Sum"], **span
    )["Datapoints"]
    assert [point["Sum"] for point in found] == [7.0]
    [alarm] = client.describe_alarms()["MetricAlarms"]
    assert alarm["StateReason"] == "by hand" or alarm["StateValue"] == "OK"
    if ending == "stop":
        # A server that stops stores the minute that has begun.
        found = client.get_metric_statistics(
            Namespace=NAMESPACE, MetricName="ConsumedWriteCapacityUnits", Dimensions=dimensions(TableName=table),
            Period=3600, Statistics=["Sum"], **span,
        )["Datapoints"]
        assert [point["Sum"] for point in found] == [1.0]


def test_points_are_trimmed_after_fifteen_days(at_minute):
    clock, client = at_minute.clock, client_of(at_minute)
    client.put_metric_data(Namespace="Shop", MetricData=[{"MetricName": "old", "Value": 1}])
    clock.advance(hours=10 * 24)
    client.put_metric_data(Namespace="Shop", MetricData=[{"MetricName": "new", "Value": 1}])
    days = {"minutes": 16 * 24 * 60, "period": 24 * 60 * 60, "namespace": "Shop"}
    assert statistics(client, clock, "old", "Sum", **days) == [[1.0]]
    clock.advance(hours=6 * 24)
    assert statistics(client, clock, "old", "Sum", **days) == []
    assert statistics(client, clock, "new", "Sum", **days) == [[1.0]]
    assert [metric["MetricName"] for metric in client.list_metrics(Namespace="Shop")["Metrics"]] == ["new"]


def test_pages_of_data_points(at_minute):
    clock, client = at_minute.clock, client_of(at_minute)
    start = at(clock.now_s())
    minutes = [start + datetime.timedelta(minutes=minute) for minute in range(50)]
    for name in ("a", "b"):
        client.put_metric_data(Namespace="Shop", MetricData=[
            {"MetricName": name, "Value": number, "Timestamp": minute} for number, minute in enumerate(minutes)
        ])
    metric = {"Namespace": "Shop"}
    queries = [
        {"Id": name, "MetricStat": {"Metric": metric | {"MetricName": name}, "Period": 60, "Stat": "Sum"}}
        for name in ("a", "b")
    ]
    pages = list(client.get_paginator("get_metric_data").paginate(
        MetricDataQueries=queries, StartTime=start, EndTime=minutes[-1] + datetime.timedelta(minutes=1),
        MaxDatapoints=30,
    ))
    assert len(pages) == 4
    values = {"a": [], "b": []}
    for page in pages:
        for result in page["MetricDataResults"]:
            values[result["Id"]] += result["Values"]
    assert values == {"a": list(range(49, -1, -1)), "b": list(range(49, -1, -1))}


def test_hot_keys_of_contributor_insights(own_server):
    dynamodb, client = support.client(own_server.endpoint), cloudwatch(own_server.endpoint)
    table = create_table(dynamodb, keys="pk:S,sk:N")
    dynamodb.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE")
    for number in range(4):
        put(dynamodb, table, pk="hot", sk=number)
    put(dynamodb, table, pk="cold", sk=0)
    rules = dynamodb.describe_contributor_insights(TableName=table)["ContributorInsightsRuleList"]
    now = datetime.datetime.now(datetime.timezone.utc)
    span = {"StartTime": now - datetime.timedelta(minutes=5), "EndTime": now + datetime.timedelta(minutes=1)}
    [partition_keys] = [rule for rule in rules if "-PKC-" in rule]
    report = client.get_insight_rule_report(RuleName=partition_keys, Period=60, Metrics=["Sum"], **span)
    assert report["KeyLabels"] == ["pk"]
    # A written unit counts three times.
    assert [(it["Keys"], it["ApproximateAggregateValue"]) for it in report["Contributors"]] == [
        (["hot"], 12.0), (["cold"], 3.0),
    ]
    assert report["MetricDatapoints"][0]["Sum"] == 15.0
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.get_insight_rule_report(RuleName="unknown", Period=60, **span)


def test_namespaces_are_apart(scoped_server):
    mine = cloudwatch(scoped_server.endpoint)
    other = cloudwatch(scoped_server.endpoint, aws_access_key_id="other")
    mine.put_metric_data(Namespace="Shop", MetricData=[{"MetricName": "orders", "Value": 7}])
    assert len(mine.list_metrics()["Metrics"]) == 1
    assert other.list_metrics()["Metrics"] == []


def test_metrics_can_be_switched_off():
    support.skip_if_aimed_elsewhere()
    server = Server(arguments=["--metrics-retention-days", "0"])
    try:
        with pytest.raises(botocore.exceptions.ClientError):
            cloudwatch(server.endpoint, "json").list_metrics()
        support.client(server.endpoint).list_tables()
    finally:
        server.kill()
