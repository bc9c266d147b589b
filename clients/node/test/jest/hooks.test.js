// The hooks with jest, which defines its own globally.
const { CreateTableCommand, DynamoDBClient, ListTablesCommand } = require('@aws-sdk/client-dynamodb');
const { useZenobe } = require('../../src');

const zenobe = useZenobe();

test.each([1, 2, 3])('the database is empty for every test (%i)', async () => {
  const client = new DynamoDBClient();
  expect((await client.send(new ListTablesCommand())).TableNames).toEqual([]);
  await client.send(
    new CreateTableCommand({
      TableName: 'Orders',
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      BillingMode: 'PAY_PER_REQUEST',
    }),
  );
  expect(process.env.AWS_ENDPOINT_URL_DYNAMODB).toBe(zenobe.endpoint);
});
