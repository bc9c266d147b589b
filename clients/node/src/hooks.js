'use strict';

const { startZenobe } = require('./server');

// What would lead an SDK elsewhere while the tests run.
const DISTRACTIONS = ['AWS_PROFILE', 'AWS_SESSION_TOKEN', 'AWS_IGNORE_CONFIGURED_ENDPOINT_URLS'];

/**
 * Starts a server before the tests of a file, empties it before each test, and stops it after the last. The result
 * can be used from the first hook or test on.
 */
function useZenobe(hooks = globalThis, options = {}) {
  const beforeAll = hooks.beforeAll ?? hooks.before;
  const afterAll = hooks.afterAll ?? hooks.after;
  if (!beforeAll || !hooks.beforeEach || !afterAll) {
    throw new TypeError(
      'useZenobe found no hooks: pass those of the test runner, as in useZenobe({ before, beforeEach, after })',
    );
  }
  let server;
  let isEmpty = true;
  const former = {};

  beforeAll(async () => {
    server = await startZenobe(options);
    for (const name of [...Object.keys(server.environment), ...DISTRACTIONS]) {
      former[name] = process.env[name];
      delete process.env[name];
    }
    Object.assign(process.env, server.environment);
  });
  hooks.beforeEach(async () => {
    if (!isEmpty) await server.reset();
    isEmpty = false;
  });
  afterAll(async () => {
    await server?.stop();
    for (const [name, value] of Object.entries(former)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });

  const started = () => {
    if (!server) throw new Error('the server is started before the first test; use it in hooks and tests');
    return server;
  };
  return {
    get endpoint() {
      return started().endpoint;
    },
    get clientSettings() {
      return started().clientSettings;
    },
    get environment() {
      return started().environment;
    },
    reset: () => started().reset(),
    snapshot: (name) => started().snapshot(name),
    restore: (name) => started().restore(name),
    fork: (snapshot) => started().fork(snapshot),
    fault: (rule) => started().fault(rule),
  };
}

module.exports = { useZenobe };
