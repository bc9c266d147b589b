// The hooks with node:test, as a project's own tests use them.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import { CreateTableCommand, DynamoDBClient, ListTablesCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { DynamoDBStreamsClient, ListStreamsCommand } from '@aws-sdk/client-dynamodb-streams';

import { useZenobe } from '../../src/index.js';

const zenobe = useZenobe({ before, beforeEach, after });

const table = (name) =>
  new CreateTableCommand({
    TableName: name,
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
    StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' },
  });

for (const turn of [1, 2, 3]) {
  test(`the database is empty for every test (${turn})`, async () => {
    // Code under test makes its own clients, which find the server by the environment.
    const client = new DynamoDBClient();
    assert.deepEqual((await client.send(new ListTablesCommand())).TableNames, []);
    await client.send(table('Orders'));
    await client.send(new PutItemCommand({ TableName: 'Orders', Item: { pk: { S: `${turn}` } } }));
    const streams = await new DynamoDBStreamsClient().send(new ListStreamsCommand({ TableName: 'Orders' }));
    assert.equal(streams.Streams.length, 1);
  });
}

test('a reset leaves nothing, and clients keep working', async () => {
  const client = new DynamoDBClient(zenobe.clientSettings);
  const { endpoint } = zenobe;
  for (let round = 0; round < 10; round += 1) {
    await client.send(table('Orders'));
    await zenobe.reset();
    assert.deepEqual((await client.send(new ListTablesCommand())).TableNames, []);
  }
  assert.equal(zenobe.endpoint, endpoint);
});

test('snapshots and forks are copies, and faults are met', async () => {
  const client = new DynamoDBClient({ ...zenobe.clientSettings, maxAttempts: 1 });
  const names = async (of) => (await of.send(new ListTablesCommand())).TableNames;
  await client.send(table('Orders'));
  await zenobe.snapshot('seeded');
  const fork = await zenobe.fork();
  const forked = new DynamoDBClient(fork.clientSettings);
  await forked.send(table('Others'));
  assert.deepEqual([await names(forked), await names(client)], [['Orders', 'Others'], ['Orders']]);
  await fork.stop();
  await zenobe.fault('kind=unavailable');
  await assert.rejects(names(client), { name: 'ServiceUnavailable' });
  await zenobe.restore('seeded');
  assert.deepEqual(await names(client), ['Orders']);
  await assert.rejects(zenobe.restore('other'), { name: 'ControlError', message: 'there is no snapshot `other`' });
});

test('without hooks the message says what to pass', () => {
  assert.throws(() => useZenobe({}), /pass those of the test runner/);
});
