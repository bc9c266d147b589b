import {
  CreateTableCommand,
  DeleteTableCommand,
  DynamoDBClient,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, PutCommand, QueryCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';

const client = new DynamoDBClient();
const documents = DynamoDBDocumentClient.from(client);
const TableName = 'Music';

await client.send(
  new CreateTableCommand({
    TableName,
    AttributeDefinitions: [
      { AttributeName: 'Artist', AttributeType: 'S' },
      { AttributeName: 'Song', AttributeType: 'S' },
    ],
    KeySchema: [
      { AttributeName: 'Artist', KeyType: 'HASH' },
      { AttributeName: 'Song', KeyType: 'RANGE' },
    ],
    BillingMode: 'PAY_PER_REQUEST',
  }),
);
await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1 }, { TableName });

const song = { Artist: 'Nina Simone', Song: 'Sinnerman' };
await documents.send(
  new PutCommand({
    TableName,
    Item: { ...song, Plays: 1 },
    ConditionExpression: 'attribute_not_exists(Artist)',
  }),
);
await documents.send(
  new UpdateCommand({
    TableName,
    Key: song,
    UpdateExpression: 'ADD Plays :one',
    ExpressionAttributeValues: { ':one': 1 },
  }),
);
const { Items } = await documents.send(
  new QueryCommand({
    TableName,
    KeyConditionExpression: 'Artist = :artist',
    ExpressionAttributeValues: { ':artist': 'Nina Simone' },
  }),
);
for (const item of Items) console.log(`${item.Song}: ${item.Plays} plays`);

await client.send(new DeleteTableCommand({ TableName }));
