"""Every refusal of CreateTable, in the words of the service."""

import pytest

from support import P, definition, index_definition, invalid, key_schema

NOT_PAYING = (
    "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
)
UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}


def attributes(**types):
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def envelope(message):
    return "1 validation error detected: " + message


CASES = {
    "no table name": ({"TableName": None}, "The parameter 'TableName' is required but was not present in the request"),
    "short name": (
        {"TableName": "ab"},
        envelope("Value 'ab' at 'tableName' failed to satisfy constraint: "
                 "Member must have length greater than or equal to 3"),
    ),
    "no key schema": (
        {"KeySchema": None},
        envelope("Value null at 'keySchema' failed to satisfy constraint: Member must not be null"),
    ),
    "empty key schema": (
        {"KeySchema": []},
        envelope("Value '[]' at 'keySchema' failed to satisfy constraint: "
                 "Member must have length greater than or equal to 1"),
    ),
    "no capacity": (
        {"BillingMode": None, "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 0}},
        envelope("Value '0' at 'provisionedThroughput.writeCapacityUnits' failed to satisfy constraint: "
                 "Member must have value greater than or equal to 1"),
    ),
    "unknown billing mode": (
        {"BillingMode": "FREE"},
        envelope("Value 'FREE' at 'billingMode' failed to satisfy constraint: "
                 "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]"),
    ),
    "unknown key type": (
        {"KeySchema": [{"AttributeName": "pk", "KeyType": "MAIN"}]},
        envelope("Value 'MAIN' at 'keySchema.1.member.keyType' failed to satisfy constraint: "
                 "Member must satisfy enum value set: [HASH, RANGE]"),
    ),
    "unknown attribute type": (
        {"AttributeDefinitions": attributes(pk="SS")},
        envelope("Value 'SS' at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: "
                 "Member must satisfy enum value set: [B, N, S]"),
    ),
    "on demand with capacity": ({"ProvisionedThroughput": UNITS}, P + NOT_PAYING),
    "provisioned without capacity": (
        {"BillingMode": "PROVISIONED"},
        P + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    ),
    "neither mode nor capacity": (
        {"BillingMode": None},
        P + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    ),
    "absurd capacity": (
        {"BillingMode": None,
         "ProvisionedThroughput": {"ReadCapacityUnits": 1000000000001, "WriteCapacityUnits": 1}},
        "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
    ),
    "duplicate definition": (
        {"AttributeDefinitions": attributes(pk="S") + attributes(pk="S")},
        "Attribute Name is duplicated: pk",
    ),
    "no definitions": (
        {"AttributeDefinitions": []},
        "Invalid KeySchema: Some index key attribute have no definition",
    ),
    "undefined key": (
        {"AttributeDefinitions": attributes(other="S")},
        P + "Some index key attributes are not defined in AttributeDefinitions. "
            "Keys: [pk], AttributeDefinitions: [other]",
    ),
    "same name twice": (
        {"KeySchema": key_schema("pk:S,pk:S"), "AttributeDefinitions": attributes(pk="S", sk="S")},
        "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    ),
    "first is not hash": (
        {"KeySchema": [{"AttributeName": "pk", "KeyType": "RANGE"}]},
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    ),
    "second is not range": (
        {"KeySchema": [{"AttributeName": name, "KeyType": "HASH"} for name in ("pk", "sk")],
         "AttributeDefinitions": attributes(pk="S", sk="S")},
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
    ),
    "unused definition": (
        {"AttributeDefinitions": attributes(pk="S", more="S")},
        P + "Number of attributes in KeySchema does not exactly match number of attributes "
            "defined in AttributeDefinitions",
    ),
    "empty LSI list": ({"LocalSecondaryIndexes": []}, P + "List of LocalSecondaryIndexes is empty"),
    "empty GSI list": ({"GlobalSecondaryIndexes": []}, P + "List of GlobalSecondaryIndexes is empty"),
    "LSI without table sort key": (
        {"LocalSecondaryIndexes": [index_definition("idx", "pk:S,a:S")],
         "AttributeDefinitions": attributes(pk="S", a="S")},
        P + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
    ),
    "LSI without sort key": (
        {"KeySchema": key_schema("pk:S,sk:S"), "AttributeDefinitions": attributes(pk="S", sk="S"),
         "LocalSecondaryIndexes": [index_definition("idx", "pk:S")]},
        P + "Index KeySchema does not have a range key for index: idx",
    ),
    "LSI with another hash": (
        {"KeySchema": key_schema("pk:S,sk:S"), "AttributeDefinitions": attributes(pk="S", sk="S", a="S"),
         "LocalSecondaryIndexes": [index_definition("idx", "sk:S,a:S")]},
        P + "Index KeySchema does not have the same leading hash key as table KeySchema for index: idx. "
            "index hash key: sk, table hash key: pk",
    ),
    "six LSIs": (
        {"KeySchema": key_schema("pk:S,sk:S"), "AttributeDefinitions": attributes(pk="S", sk="S"),
         "LocalSecondaryIndexes": [index_definition(f"idx{i}", "pk:S,sk:S") for i in range(6)]},
        P + "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
    ),
    "twenty-one GSIs": (
        {"GlobalSecondaryIndexes": [index_definition(f"idx{i}", "pk:S") for i in range(21)]},
        P + "GlobalSecondaryIndex count exceeds the per-table limit of 20",
    ),
    "duplicate index": (
        {"GlobalSecondaryIndexes": [index_definition("idx", "pk:S"), index_definition("idx", "pk:S")]},
        P + "Duplicate index name: idx",
    ),
    "index capacity on demand": (
        {"GlobalSecondaryIndexes": [index_definition("idx", "pk:S") | {"ProvisionedThroughput": UNITS}]},
        P + "ProvisionedThroughput should not be specified for index: idx when BillingMode is PAY_PER_REQUEST",
    ),
    "no index capacity": (
        {"BillingMode": None, "ProvisionedThroughput": UNITS,
         "GlobalSecondaryIndexes": [index_definition("idx", "pk:S")]},
        P + "ProvisionedThroughput is not specified for index: idx",
    ),
    "empty projection": (
        {"GlobalSecondaryIndexes": [index_definition("idx", "pk:S") | {"Projection": {}}]},
        P + "Unknown ProjectionType: null",
    ),
    "keys only with attributes": (
        {"GlobalSecondaryIndexes": [index_definition("idx", "pk:S")
                                    | {"Projection": {"ProjectionType": "KEYS_ONLY", "NonKeyAttributes": ["a"]}}]},
        P + "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
    ),
    "all with attributes": (
        {"GlobalSecondaryIndexes": [index_definition("idx", "pk:S")
                                    | {"Projection": {"ProjectionType": "ALL", "NonKeyAttributes": ["a"]}}]},
        P + "ProjectionType is ALL, but NonKeyAttributes is specified",
    ),
    "include without attributes": (
        {"GlobalSecondaryIndexes": [index_definition("idx", "pk:S") | {"Projection": {"ProjectionType": "INCLUDE"}}]},
        P + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
    "duplicate projected attribute": (
        {"GlobalSecondaryIndexes": [index_definition("idx", "pk:S", ["x", "x"])]},
        P + "Duplicate element in NonKeyAttributes: x",
    ),
    "stream without view type": (
        {"StreamSpecification": {"StreamEnabled": True}},
        P + "Table is being created with a stream enabled, UpdateViewType is required",
    ),
    "no stream with view type": (
        {"StreamSpecification": {"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"}},
        P + "Table is being created with a stream disabled, UpdateViewType should not be specified",
    ),
    "on-demand maximum when provisioned": (
        {"BillingMode": None, "ProvisionedThroughput": UNITS, "OnDemandThroughput": {"MaxReadRequestUnits": 5}},
        P + "MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED.",
    ),
    "table class": (
        {"TableClass": "GOLD"},
        "Invalid table-class parameter provided. Please try again with a valid table-class value: "
        "[STANDARD, STANDARD_INFREQUENT_ACCESS].",
    ),
    "reserved tag": (
        {"Tags": [{"Key": "aws:x", "Value": "v"}]},
        "Tag Key cannot be prefixed with aws:, Key: aws:x",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refusal(dynamodb, name):
    changes, message = CASES[name]
    parameters = {member: value for member, value in (definition() | changes).items() if value is not None}
    with invalid(message):
        dynamodb.create_table(**parameters)


def test_three_keys(dynamodb):
    parameters = definition(keys="pk:S,sk:S")
    parameters["KeySchema"].append({"AttributeName": "third", "KeyType": "RANGE"})
    with pytest.raises(dynamodb.exceptions.ClientError) as caught:
        dynamodb.create_table(**parameters)
    error = caught.value.response["Error"]
    assert error["Code"] == "ValidationException"
    # The elements are printed as Java objects, whose hashes vary.
    assert error["Message"].endswith(
        "at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2"
    )


def test_several_constraints_are_reported_together(dynamodb):
    parameters = definition() | {
        "BillingMode": "FREE",
        "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
    }
    with pytest.raises(dynamodb.exceptions.ClientError) as caught:
        dynamodb.create_table(**parameters)
    message = caught.value.response["Error"]["Message"]
    assert message.startswith("3 validation errors detected: ")
    constraint = "failed to satisfy constraint: Member must have value greater than or equal to 1"
    write = f"Value '0' at 'provisionedThroughput.writeCapacityUnits' {constraint}"
    read = f"Value '0' at 'provisionedThroughput.readCapacityUnits' {constraint}"
    assert 0 < message.index(write) < message.index(read)
    assert (
        "Value 'FREE' at 'billingMode' failed to satisfy constraint: "
        "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]"
    ) in message
