"""Application Auto Scaling: targets, policies and scheduled actions that change tables, minute by minute of a driven clock."""

import boto3
import pytest
from botocore.exceptions import ClientError

import support
from support import create_table, item, unique_name

WRITES = "dynamodb:table:WriteCapacityUnits"
READS = "dynamodb:table:ReadCapacityUnits"
MINUTE_UNITS = 60


def client(endpoint):
    return boto3.client("application-autoscaling", config=support.CONFIG, **support.connection(endpoint, support.REGION))


@pytest.fixture(scope="module")
def scaling(endpoint):
    return client(endpoint)


def provisioned(dynamodb, units=5):
    return create_table(
        dynamodb, keys="pk:S", BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": units, "WriteCapacityUnits": units},
    )


def of(table, dimension=WRITES):
    return {"ServiceNamespace": "dynamodb", "ResourceId": f"table/{table}", "ScalableDimension": dimension}


def policy(table, dimension=WRITES, name="half", **settings):
    metric = "DynamoDBWriteCapacityUtilization" if dimension == WRITES else "DynamoDBReadCapacityUtilization"
    return of(table, dimension) | {
        "PolicyName": name,
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue": 50.0, "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
        } | settings,
    }


def units(dynamodb, table):
    throughput = dynamodb.describe_table(TableName=table)["Table"]["ProvisionedThroughput"]
    return throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]


def write(dynamodb, table, per_second):
    """A minute's worth of units, in items of 100 units."""
    total = per_second * MINUTE_UNITS
    for number in range(total // 100):
        dynamodb.put_item(TableName=table, Item=item(pk=str(number), data="x" * (100 * 1024 - 50)))


def failure(code, call, **parameters):
    with pytest.raises(ClientError) as raised:
        call(**parameters)
    assert raised.value.response["Error"]["Code"] == code
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return raised.value.response["Error"]["Message"]


def test_load_scales_out_and_in(driven):
    dynamodb, scaling = driven.dynamodb, client(driven.server.endpoint)
    table = provisioned(dynamodb)
    scaling.register_scalable_target(**of(table), MinCapacity=5, MaxCapacity=40)
    alarms = scaling.put_scaling_policy(**policy(table))["Alarms"]
    kinds = ["AlarmHigh", "AlarmLow", "ProvisionedCapacityHigh", "ProvisionedCapacityLow"]
    for alarm, kind in zip(alarms, kinds, strict=True):
        assert alarm["AlarmName"].startswith(f"TargetTracking-table/{table}-{kind}-")
        assert alarm["AlarmARN"].endswith(":alarm:" + alarm["AlarmName"])

    for expected in (5, 20):
        write(dynamodb, table, 10)
        driven.clock.advance(minutes=1)
        assert units(dynamodb, table) == (5, expected)
    [activity] = scaling.describe_scaling_activities(ServiceNamespace="dynamodb", ResourceId=f"table/{table}")["ScalingActivities"]
    assert activity["Description"] == "Setting write capacity units to 20."
    assert activity["Cause"] == f"monitor alarm {alarms[0]['AlarmName']} in state ALARM triggered policy half"
    assert activity["StatusCode"] == "Successful"
    assert activity["StatusMessage"] == (
        "Successfully set write capacity units to 20. Change successfully fulfilled by dynamodb."
    )
    assert activity["ScalableDimension"] == WRITES
    assert activity["StartTime"].timestamp() * 1000 == pytest.approx(driven.clock.now_ms(), abs=1000)

    # Never more than the maximum.
    for expected in (20, 40, 40):
        write(dynamodb, table, 30)
        driven.clock.advance(minutes=1)
        assert units(dynamodb, table) == (5, expected)
    # Fifteen minutes without requests.
    driven.clock.advance(minutes=14)
    assert units(dynamodb, table) == (5, 40)
    driven.clock.advance(minutes=1)
    assert units(dynamodb, table) == (5, 5)
    everything = scaling.describe_scaling_activities(ServiceNamespace="dynamodb", IncludeNotScaledActivities=True)["ScalingActivities"]
    reasons = [activity["NotScaledReasons"] for activity in everything if "NotScaledReasons" in activity]
    assert reasons == [[{"Code": "AlreadyAtMaxCapacity", "MaxCapacity": 40}]]
    assert len(scaling.describe_scaling_activities(ServiceNamespace="dynamodb")["ScalingActivities"]) == len(everything) - 1


def test_scheduled_actions_run(driven):
    dynamodb, scaling = driven.dynamodb, client(driven.server.endpoint)
    table = provisioned(dynamodb)
    scaling.register_scalable_target(**of(table, READS), MinCapacity=1, MaxCapacity=10)
    scaling.put_scheduled_action(
        **of(table, READS), ScheduledActionName="morning", Schedule="cron(0 8 * * ? *)",
        ScalableTargetAction={"MinCapacity": 8, "MaxCapacity": 30},
    )
    scaling.put_scheduled_action(
        **of(table, READS), ScheduledActionName="evening", Schedule="cron(0 20 * * ? *)", Timezone="UTC",
        ScalableTargetAction={"MinCapacity": 1, "MaxCapacity": 2},
    )
    until_midnight_ms = -driven.clock.now_ms() % (24 * 3600 * 1000)
    driven.clock.advance(seconds=until_midnight_ms / 1000)
    assert units(dynamodb, table)[0] in (2, 5)
    driven.clock.advance(hours=8)
    assert units(dynamodb, table) == (8, 5)
    [target] = scaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]
    assert (target["MinCapacity"], target["MaxCapacity"]) == (8, 30)
    newest = scaling.describe_scaling_activities(ServiceNamespace="dynamodb")["ScalingActivities"][:2]
    assert [(activity["Description"], activity["Cause"]) for activity in newest] == [
        ("Setting read capacity units to 8.", "minimum capacity was set to 8"),
        ("Setting min capacity to 8 and max capacity to 30", "scheduled action name morning was triggered"),
    ]
    driven.clock.advance(hours=12)
    assert units(dynamodb, table) == (2, 5)
    actions = scaling.describe_scheduled_actions(ServiceNamespace="dynamodb", ScheduledActionNames=["evening"])["ScheduledActions"]
    assert [(action["Schedule"], action["Timezone"]) for action in actions] == [("cron(0 20 * * ? *)", "UTC")]
    scaling.delete_scheduled_action(**of(table, READS), ScheduledActionName="evening")
    failure("ObjectNotFoundException", scaling.delete_scheduled_action, **of(table, READS), ScheduledActionName="evening")


def test_everything_survives_a_restart(own_server):
    dynamodb, scaling = support.client(own_server.endpoint), client(own_server.endpoint)
    table = provisioned(dynamodb)
    scaling.register_scalable_target(**of(table), MinCapacity=7, MaxCapacity=9, Tags={"team": "shop"})
    scaling.put_scaling_policy(**policy(table))
    action = {"ScheduledActionName": "a", "Schedule": "rate(1 day)", "ScalableTargetAction": {"MaxCapacity": 8}}
    scaling.put_scheduled_action(**of(table), **action)

    def described(scaling):
        answers = [
            scaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"],
            scaling.describe_scaling_policies(ServiceNamespace="dynamodb")["ScalingPolicies"],
            scaling.describe_scheduled_actions(ServiceNamespace="dynamodb")["ScheduledActions"],
            scaling.describe_scaling_activities(ServiceNamespace="dynamodb")["ScalingActivities"],
        ]
        tags = scaling.list_tags_for_resource(ResourceARN=answers[0][0]["ScalableTargetARN"])["Tags"]
        return [*answers, tags]

    before = described(scaling)
    assert [len(answer) for answer in before] == [1, 1, 1, 1, 1]
    own_server.kill()
    own_server.start()
    assert described(client(own_server.endpoint)) == before


def test_the_calls_of_terraform(scaling, dynamodb):
    """What hashicorp/aws does for aws_appautoscaling_target and aws_appautoscaling_policy in examples/terraform/main.tf: apply, a plan
    without differences, a change, destroy."""
    table = provisioned(dynamodb)
    target = of(table, READS)
    arn = scaling.register_scalable_target(**target, MinCapacity=5, MaxCapacity=100, Tags={"Team": "shop"})["ScalableTargetARN"]
    filters = {"ServiceNamespace": "dynamodb", "ResourceIds": [target["ResourceId"]], "ScalableDimension": READS}
    [found] = scaling.describe_scalable_targets(**filters)["ScalableTargets"]
    assert found["ScalableTargetARN"] == arn
    assert found["RoleARN"].endswith("/AWSServiceRoleForApplicationAutoScaling_DynamoDBTable")
    assert found["SuspendedState"] == {
        "DynamicScalingInSuspended": False, "DynamicScalingOutSuspended": False, "ScheduledScalingSuspended": False,
    }
    name = f"DynamoDBReadCapacityUtilization:{target['ResourceId']}"
    put = policy(table, READS, name, TargetValue=70.0, ScaleInCooldown=60, ScaleOutCooldown=30, DisableScaleIn=False)
    created = scaling.put_scaling_policy(**put)

    def read():
        [found] = scaling.describe_scaling_policies(PolicyNames=[name], **target)["ScalingPolicies"]
        return found

    assert read()["PolicyARN"] == created["PolicyARN"]
    assert read()["Alarms"] == created["Alarms"]
    configuration = put["TargetTrackingScalingPolicyConfiguration"]
    assert read()["TargetTrackingScalingPolicyConfiguration"] == configuration
    assert scaling.list_tags_for_resource(ResourceARN=arn)["Tags"] == {"Team": "shop"}

    scaling.register_scalable_target(**target, MinCapacity=5, MaxCapacity=200)
    scaling.tag_resource(ResourceARN=arn, Tags={"Team": "store", "Stage": "test"})
    scaling.untag_resource(ResourceARN=arn, TagKeys=["Stage"])
    [found] = scaling.describe_scalable_targets(**filters)["ScalableTargets"]
    assert (found["ScalableTargetARN"], found["MaxCapacity"]) == (arn, 200)
    assert scaling.list_tags_for_resource(ResourceARN=arn)["Tags"] == {"Team": "store"}

    scaling.delete_scaling_policy(**target, PolicyName=name)
    assert scaling.describe_scaling_policies(PolicyNames=[name], **target)["ScalingPolicies"] == []
    scaling.deregister_scalable_target(**target)
    assert scaling.describe_scalable_targets(**filters)["ScalableTargets"] == []
    failure("ResourceNotFoundException", scaling.list_tags_for_resource, ResourceARN=arn)
    dynamodb.delete_table(TableName=table)


def test_pages(scaling, dynamodb):
    tables = sorted(provisioned(dynamodb) for _ in range(4))
    for table in tables:
        for dimension in (READS, WRITES):
            scaling.register_scalable_target(**of(table, dimension), MinCapacity=1, MaxCapacity=10)
            scaling.put_scaling_policy(**policy(table, dimension))
            for number in range(3):
                scaling.put_scheduled_action(
                    **of(table, dimension), ScheduledActionName=f"{number}", Schedule="rate(1 day)",
                    ScalableTargetAction={"MaxCapacity": 8},
                )
    ids = [f"table/{table}" for table in tables]
    pages = [("describe_scalable_targets", "ScalableTargets", 8, 3), ("describe_scaling_policies", "ScalingPolicies", 8, 3),
             ("describe_scheduled_actions", "ScheduledActions", 24, 5)]
    for operation, member, count, size in pages:
        pages = scaling.get_paginator(operation).paginate(ServiceNamespace="dynamodb", PaginationConfig={"PageSize": size})
        entries = [entry for page in pages for entry in page[member]]
        keys = [
            (entry["ResourceId"], entry["ScalableDimension"], entry.get("ScheduledActionName"))
            for entry in entries if entry["ResourceId"] in ids
        ]
        assert len(keys) == count
        assert keys == sorted(set(keys))
    named = scaling.describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=ids[:2])["ScalableTargets"]
    assert [target["ResourceId"] for target in named] == [ids[0], ids[0], ids[1], ids[1]]
    failure("InvalidNextTokenException", scaling.describe_scalable_targets, ServiceNamespace="dynamodb", NextToken="?")
    for table in tables:
        for dimension in (READS, WRITES):
            scaling.deregister_scalable_target(**of(table, dimension))
    # What belonged to the targets is gone with them.
    assert scaling.describe_scheduled_actions(ServiceNamespace="dynamodb", ResourceId=ids[0])["ScheduledActions"] == []
    assert scaling.describe_scaling_policies(ServiceNamespace="dynamodb", ResourceId=ids[0])["ScalingPolicies"] == []


def test_errors(scaling, dynamodb):
    table = provisioned(dynamodb)
    place = f"service namespace: dynamodb, resource ID: table/{table}, scalable dimension: {WRITES}"
    assert failure("ObjectNotFoundException", scaling.put_scaling_policy, **policy(table)) == (
        f"No scalable target registered for {place}"
    )
    assert failure("ObjectNotFoundException", scaling.deregister_scalable_target, **of(table)) == (
        f"No scalable target found for {place}"
    )
    register = scaling.register_scalable_target
    assert failure("ValidationException", register, **of(table), MinCapacity=9, MaxCapacity=5) == (
        "Maximum capacity cannot be less than minimum capacity"
    )
    missing = unique_name()
    assert failure("ValidationException", register, **of(missing), MinCapacity=1, MaxCapacity=5) == (
        f"DynamoDB table does not exist: table/{missing}"
    )
    register(**of(table), MinCapacity=1, MaxCapacity=5)
    assert failure("ObjectNotFoundException", scaling.delete_scaling_policy, **of(table), PolicyName="p") == (
        f"No scaling policy found for {place}, policy name: p"
    )
    step = of(table) | {"PolicyName": "p", "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": {}}
    assert "StepScaling is not supported" in failure("ValidationException", scaling.put_scaling_policy, **step)
    scaling.put_scaling_policy(**policy(table))
    assert failure("ValidationException", scaling.put_scaling_policy, **policy(table, name="other")) == (
        "Only one TargetTrackingScaling policy for a given metric specification is allowed."
    )
    other = {"ServiceNamespace": "ecs", "ResourceId": "service/a/b", "ScalableDimension": "ecs:service:DesiredCount"}
    assert "only dynamodb" in failure("ValidationException", register, **other, MinCapacity=1, MaxCapacity=5)
    scaling.deregister_scalable_target(**of(table))


def test_namespaces_are_apart(scoped_server):
    def service(name, key):
        connection = support.connection(scoped_server.endpoint, support.REGION) | {"aws_access_key_id": key}
        return boto3.client(name, config=support.CONFIG, **connection)

    table = provisioned(service("dynamodb", "first"))
    first, second = (service("application-autoscaling", key) for key in ("first", "second"))
    first.register_scalable_target(**of(table), MinCapacity=1, MaxCapacity=5)
    assert second.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"] == []
    failure("ValidationException", second.register_scalable_target, **of(table), MinCapacity=1, MaxCapacity=5)
