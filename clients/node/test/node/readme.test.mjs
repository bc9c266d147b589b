// The example of README.md, run as it stands.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const PACKAGE = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

test('the example runs in a project that has the package', (context) => {
  const examples = [...readFileSync(join(PACKAGE, 'README.md'), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)];
  assert.equal(examples.length, 1);
  const project = mkdtempSync(join(tmpdir(), 'zenobe-readme-'));
  context.after(() => rmSync(project, { recursive: true }));
  const modules = join(project, 'node_modules');
  mkdirSync(modules);
  symlinkSync(PACKAGE, join(modules, 'zenobe-testing'));
  symlinkSync(join(PACKAGE, 'node_modules/@aws-sdk'), join(modules, '@aws-sdk'));
  writeFileSync(join(project, 'example.test.mjs'), examples[0][1]);
  // A test runner inside a test runner would report to the outer one.
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const arguments_ = ['--test', '--test-reporter=tap', 'example.test.mjs'];
  const run = spawnSync(process.execPath, arguments_, { cwd: project, env, encoding: 'utf8' });
  assert.equal(run.status, 0, run.stdout + run.stderr);
  assert.match(run.stdout, /^# pass 1$/m);
  assert.match(run.stdout, /TableNames: \[\]/);
});
