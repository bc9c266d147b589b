"""Operations on things that never exist here: they are checked as on AWS, and then answered with what AWS answers where there is none."""

import pytest

from support import create_table, invalid, missing_resource

STREAM = "arn:aws:kinesis:us-east-1:123456789012:stream/changes"
STATE = "Table is not in a valid state to enable Kinesis Streaming Destination: "


@pytest.fixture(scope="module")
def table(dynamodb):
    return create_table(dynamodb)


def missing_table(table="no-such-table"):
    return missing_resource(f"Requested resource not found: Table: {table} not found")


def test_a_table_has_no_kinesis_destinations(dynamodb, table):
    answer = dynamodb.describe_kinesis_streaming_destination(TableName=table)
    assert (answer["TableName"], answer["KinesisDataStreamDestinations"]) == (table, [])
    with missing_table():
        dynamodb.describe_kinesis_streaming_destination(TableName="no-such-table")


def test_kinesis_destinations_cannot_be_enabled(dynamodb, table):
    with missing_resource(
        f"Requested resource not found: Kinesis stream: {STREAM} not found. Zenobe has no Kinesis to stream to"
    ):
        dynamodb.enable_kinesis_streaming_destination(TableName=table, StreamArn=STREAM)
    with missing_table():
        dynamodb.enable_kinesis_streaming_destination(TableName="no-such-table", StreamArn=STREAM)
    assert dynamodb.describe_kinesis_streaming_destination(TableName=table)["KinesisDataStreamDestinations"] == []


def test_kinesis_destinations_that_were_never_enabled(dynamodb, table):
    with invalid(f"{STATE}KinesisStreamingDestination must be ACTIVE to perform DISABLE operation."):
        dynamodb.disable_kinesis_streaming_destination(TableName=table, StreamArn=STREAM)
    with missing_table():
        dynamodb.disable_kinesis_streaming_destination(TableName="no-such-table", StreamArn=STREAM)
    precision = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    with invalid("Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters"):
        dynamodb.disable_kinesis_streaming_destination(
            TableName=table, StreamArn=STREAM, EnableKinesisStreamingConfiguration=precision
        )
    with invalid(
        f"{STATE}Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. "
        f"TableName: {table}, kdsArn: {STREAM}"
    ):
        dynamodb.update_kinesis_streaming_destination(
            TableName=table, StreamArn=STREAM, UpdateKinesisStreamingConfiguration=precision
        )


def test_a_table_of_one_region_has_no_replicas_to_scale(dynamodb, table):
    message = f"Global table with name: '{table}' does not exist."
    with missing_resource(message):
        dynamodb.describe_table_replica_auto_scaling(TableName=table)
    with missing_resource(message):
        dynamodb.update_table_replica_auto_scaling(
            TableName=table,
            ProvisionedWriteCapacityAutoScalingUpdate={
                "MinimumUnits": 1,
                "MaximumUnits": 10,
                "ScalingPolicyUpdate": {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0}},
            },
            ReplicaUpdates=[{"RegionName": "eu-west-1"}],
        )
    with missing_table():
        dynamodb.describe_table_replica_auto_scaling(TableName="no-such-table")


def test_no_table_has_a_vector_index(dynamodb, table):
    search = {"IndexName": "by-vector", "SearchVector": [{"N": "1"}, {"N": "0.5"}], "TopK": 3}
    with invalid("The table does not have the specified index: by-vector"):
        dynamodb.search_vectors(TableName=table, **search)
    with missing_resource():
        dynamodb.search_vectors(TableName="no-such-table", **search)
    with invalid("Provided TopK value '101' is out of valid range. The value must be between 1 and 100 inclusive"):
        dynamodb.search_vectors(TableName=table, **search | {"TopK": 101})
