import boto3
from boto3.dynamodb.conditions import Key

dynamodb = boto3.resource("dynamodb")
table = dynamodb.create_table(
    TableName="Music",
    AttributeDefinitions=[
        {"AttributeName": "Artist", "AttributeType": "S"},
        {"AttributeName": "Song", "AttributeType": "S"},
    ],
    KeySchema=[
        {"AttributeName": "Artist", "KeyType": "HASH"},
        {"AttributeName": "Song", "KeyType": "RANGE"},
    ],
    BillingMode="PAY_PER_REQUEST",
)
table.wait_until_exists()

song = {"Artist": "Nina Simone", "Song": "Sinnerman"}
table.put_item(Item=song | {"Plays": 1}, ConditionExpression="attribute_not_exists(Artist)")
table.update_item(Key=song, UpdateExpression="ADD Plays :one", ExpressionAttributeValues={":one": 1})
for item in table.query(KeyConditionExpression=Key("Artist").eq("Nina Simone"))["Items"]:
    print(f"{item['Song']}: {item['Plays']} plays")

table.delete()
