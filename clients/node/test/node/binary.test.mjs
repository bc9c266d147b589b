// Where the server comes from, and what is said when there is none.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';

import { findBinary, startZenobe } from '../../src/index.js';

let home;
let site;
let files;
let address;

beforeEach(async () => {
  home = await fs.mkdtemp(path.join(os.tmpdir(), 'zenobe-testing-'));
  files = new Map();
  site = http.createServer((request, answer) => {
    const content = files.get(request.url);
    answer.writeHead(content ? 200 : 404).end(content);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  address = `http://127.0.0.1:${site.address().port}`;
});

afterEach(async () => {
  site.close();
  site.closeAllConnections();
  await fs.rm(home, { recursive: true });
});

const variables = (more = {}) => ({ PATH: path.join(home, 'nowhere'), XDG_CACHE_HOME: home, ...more });

async function executable(name, text = '#!/bin/sh\nexit 0\n') {
  const file = path.join(home, name);
  await fs.mkdir(path.dirname(file), { recursive: true });
  await fs.writeFile(file, text, { mode: 0o755 });
  return file;
}

test('a named binary wins over the path', async () => {
  const named = await executable('named');
  const installed = await executable('bin/zenobe');
  const PATH = path.dirname(installed);
  assert.equal(await findBinary(variables({ PATH })), installed);
  assert.equal(await findBinary(variables({ PATH, ZENOBE_BINARY: named })), named);
  await assert.rejects(findBinary(variables({ ZENOBE_BINARY: '/nowhere' })), /not an executable file/);
});

test('without a binary the message says what to do', async () => {
  await assert.rejects(findBinary(variables()), /ZENOBE_BINARY.*ZENOBE_DOWNLOAD_URL.*ZENOBE_DOWNLOAD_SHA256/);
});

for (const isArchive of [true, false]) {
  test(`a download is checked and kept (archive: ${isArchive})`, async () => {
    const text = '#!/bin/sh\necho downloaded\n';
    const binary = await executable('zenobe-1/zenobe', text);
    const content = isArchive
      ? execFileSync('tar', ['-czf', '-', '-C', home, 'zenobe-1'])
      : await fs.readFile(binary);
    files.set('/zenobe', content);
    const settings = variables({
      PATH: process.env.PATH,
      ZENOBE_DOWNLOAD_URL: `${address}/zenobe`,
      ZENOBE_DOWNLOAD_SHA256: createHash('sha256').update(content).digest('hex').toUpperCase(),
    });
    const found = await findBinary(settings);
    assert.equal(await fs.readFile(found, 'utf8'), text);
    await fs.access(found, fs.constants.X_OK);
    files.clear();
    assert.equal(await findBinary(settings), found);
  });
}

test('a download with another checksum, or without one, is refused', async () => {
  files.set('/zenobe', 'something else');
  const settings = variables({ ZENOBE_DOWNLOAD_URL: `${address}/zenobe` });
  await assert.rejects(findBinary(settings), /ZENOBE_DOWNLOAD_SHA256 must hold/);
  settings.ZENOBE_DOWNLOAD_SHA256 = '0'.repeat(64);
  await assert.rejects(findBinary(settings), /has the checksum .* asks for 0000/);
  await assert.rejects(findBinary(settings), /has the checksum .* asks for 0000/);
  files.clear();
  await assert.rejects(findBinary(settings), /cannot download .*404/);
});

test('a server that does not start is quoted', async () => {
  const broken = await executable('broken', '#!/bin/sh\necho the disk is on fire >&2\nexit 3\n');
  await assert.rejects(startZenobe({ binary: broken }), /the disk is on fire/);
  await assert.rejects(startZenobe({ binary: path.join(home, 'absent') }), /ENOENT/);
  await assert.rejects(startZenobe({ arguments: ['--no-such-option'] }), /--no-such-option/);
});

test('the environment configures no server', async () => {
  process.env.ZENOBE_DATA = '/nowhere/at/all';
  process.env.ZENOBE_DURABILITY = 'nonsense';
  try {
    await (await startZenobe()).stop();
  } finally {
    delete process.env.ZENOBE_DATA;
    delete process.env.ZENOBE_DURABILITY;
  }
});

test('servers run side by side, with options of their own', async () => {
  const [one, other] = await Promise.all([startZenobe(), startZenobe({ arguments: ['--driven-clock'] })]);
  assert.notEqual(one.endpoint, other.endpoint);
  const clock = async (server) => (await fetch(`${server.endpoint}/_zenobe/clock`)).json();
  assert.equal((await clock(one)).driven, false);
  assert.equal((await clock(other)).driven, true);
  await Promise.all([one.stop(), other.stop()]);
  await assert.rejects(fetch(one.endpoint));
});
