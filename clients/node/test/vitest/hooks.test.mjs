// The hooks with vitest, which are imported.
import { CreateTableCommand, DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';

import { useZenobe } from '../../src/index.js';

const zenobe = useZenobe({ beforeAll, beforeEach, afterAll });

test.each([1, 2, 3])('the database is empty for every test (%i)', async () => {
  const client = new DynamoDBClient(zenobe.clientSettings);
  expect((await client.send(new ListTablesCommand())).TableNames).toEqual([]);
  await client.send(
    new CreateTableCommand({
      TableName: 'Orders',
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      BillingMode: 'PAY_PER_REQUEST',
    }),
  );
});
