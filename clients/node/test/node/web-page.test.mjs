// The SDK in a web page: with the handler that it uses in browsers, under the rules that browsers add.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import {
  ConditionalCheckFailedException,
  CreateTableCommand,
  DynamoDBClient,
  GetItemCommand,
  ListTablesCommand,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';
import { FetchHttpHandler } from '@smithy/fetch-http-handler';

import { useZenobe } from '../../src/index.js';

const ALLOWED = 'https://app.example.org';
const FOREIGN = 'https://elsewhere.example.org';

const zenobe = useZenobe(
  { before, beforeEach, after },
  { arguments: ['--cors-origin', ALLOWED, '--cors-origin', 'http://localhost:3000'] },
);

// What a page may send without asking first, and may read without being told. https://fetch.spec.whatwg.org
const SAFE_TO_SEND = ['accept', 'accept-language', 'content-language'];
const SAFE_TO_READ = ['cache-control', 'content-language', 'content-length', 'content-type', 'expires', 'last-modified', 'pragma'];
// The browser sets these itself, whatever the page asks for.
const OF_THE_BROWSER = ['host', 'content-length', 'user-agent', 'connection', 'origin'];

const words = (headers, name) =>
  (headers.get(name) ?? '').split(',').map((word) => word.trim().toLowerCase());

const assertShared = (headers, origin) => {
  const shared = headers.get('access-control-allow-origin');
  // A browser tells a page no more than this.
  if (shared !== '*' && shared !== origin) throw new TypeError('Failed to fetch');
};

/** Does with the SDK's requests what a browser does with those of a page of this origin. */
class PageHandler {
  constructor(origin) {
    this.origin = origin;
    this.fetching = new FetchHttpHandler();
    this.preflights = [];
  }

  async handle(request, options) {
    const names = Object.keys(request.headers).map((name) => name.toLowerCase());
    const sent = names.filter((name) => !OF_THE_BROWSER.includes(name));
    await this.ask(request, sent.filter((name) => !SAFE_TO_SEND.includes(name)).sort());
    const own = Object.entries(request.headers).filter(([name]) => sent.includes(name.toLowerCase()));
    request.headers = { ...Object.fromEntries(own), origin: this.origin };
    const { response } = await this.fetching.handle(request, options);
    const headers = new Headers(response.headers);
    assertShared(headers, this.origin);
    const readable = [...SAFE_TO_READ, ...words(headers, 'access-control-expose-headers')];
    response.headers = Object.fromEntries([...headers].filter(([name]) => readable.includes(name)));
    return { response };
  }

  /** The preflight: without credentials and without a body. */
  async ask(request, names) {
    const url = `${request.protocol}//${request.hostname}:${request.port}${request.path}`;
    const headers = {
      origin: this.origin,
      'access-control-request-method': request.method,
      'access-control-request-headers': names.join(','),
    };
    const answer = await fetch(url, { method: 'OPTIONS', headers });
    this.preflights.push({ status: answer.status, names });
    assertShared(answer.headers, this.origin);
    const granted = words(answer.headers, 'access-control-allow-headers');
    // A star would not include `authorization`.
    if (!answer.ok || !names.every((name) => granted.includes(name))) throw new TypeError('Failed to fetch');
  }

  httpHandlerConfigs() {
    return {};
  }

  updateHttpClientConfig() {}

  destroy() {
    this.fetching.destroy();
  }
}

const pageOf = (origin) => {
  const handler = new PageHandler(origin);
  const client = new DynamoDBClient({ ...zenobe.clientSettings, requestHandler: handler, maxAttempts: 1 });
  return { client, handler };
};

const table = new CreateTableCommand({
  TableName: 'Orders',
  AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
  KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
  BillingMode: 'PAY_PER_REQUEST',
});

for (const origin of [ALLOWED, 'http://localhost:3000']) {
  test(`a page of the allowed origin ${origin} reads and writes`, async () => {
    const { client, handler } = pageOf(origin);
    await client.send(table);
    const item = { pk: { S: 'a' }, total: { N: '12.50' } };
    await client.send(new PutItemCommand({ TableName: 'Orders', Item: item }));
    const found = await client.send(new GetItemCommand({ TableName: 'Orders', Key: { pk: { S: 'a' } } }));
    assert.equal(found.Item.total.N, '12.5');
    // The page may see the id by which the server's log knows the request.
    assert.match(found.$metadata.requestId, /^[0-9A-Z]{52}$/);
    for (const { status, names } of handler.preflights) {
      assert.equal(status, 200);
      for (const asked of ['authorization', 'content-type', 'x-amz-date', 'x-amz-target']) {
        assert.ok(names.includes(asked), `the SDK sends ${asked}: ${names}`);
      }
    }
  });

  test(`a page of ${origin} learns why it fails`, async () => {
    const { client } = pageOf(origin);
    await client.send(table);
    const put = { TableName: 'Orders', Item: { pk: { S: 'a' } }, ConditionExpression: 'attribute_exists(pk)' };
    await assert.rejects(client.send(new PutItemCommand(put)), ConditionalCheckFailedException);
  });
}

test('a page of another origin gets nothing, and changes nothing', async () => {
  const { client, handler } = pageOf(FOREIGN);
  await assert.rejects(client.send(table), { name: 'TypeError', message: 'Failed to fetch' });
  assert.deepEqual(handler.preflights.map(({ status }) => status), [403]);
  // Requests that need no preflight are not carried out either.
  handler.ask = async () => {};
  await assert.rejects(client.send(table), { name: 'TypeError', message: 'Failed to fetch' });
  const { TableNames } = await new DynamoDBClient(zenobe.clientSettings).send(new ListTablesCommand());
  assert.deepEqual(TableNames, []);
});
