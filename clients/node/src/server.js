'use strict';

// A server process that keeps everything in memory.

const { spawn } = require('node:child_process');
const { once } = require('node:events');

const { findBinary } = require('./binary');

const ADDRESS = /is listening on (http:\/\/\S+:(\d+))/;
const START_MS_MAX = 30_000;
// After a restart the port is the former one; another process may hold it for a moment.
const START_ATTEMPTS_MAX = 5;

/** The server did not start. The message holds what it said. */
class StartError extends Error {
  name = 'StartError';
}

const CONTROL_MS_MAX = 10_000;

/** The server refused what a test wanted of it. The message holds why. */
class ControlError extends Error {
  name = 'ControlError';
}

const running = new Set();
// Runners may leave without the last hook; a server must not outlive them.
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** Where a database is served, and what a test may do to it. */
class Database {
  endpoint;

  get clientSettings() {
    return {
      endpoint: this.endpoint,
      region: 'us-east-1',
      credentials: { accessKeyId: 'zenobe', secretAccessKey: 'zenobe' },
    };
  }

  get environment() {
    return {
      AWS_ENDPOINT_URL_DYNAMODB: this.endpoint,
      AWS_ENDPOINT_URL_DYNAMODB_STREAMS: this.endpoint,
      AWS_ACCESS_KEY_ID: 'zenobe',
      AWS_SECRET_ACCESS_KEY: 'zenobe',
      AWS_REGION: 'us-east-1',
      AWS_DEFAULT_REGION: 'us-east-1',
    };
  }

  async reset() {
    await this.control('POST', 'reset');
  }

  async snapshot(name) {
    await this.control('POST', 'snapshots', { name });
  }

  async restore(name) {
    await this.control('POST', 'restore', { snapshot: name });
  }

  async fork(snapshot) {
    return new Fork(this, await this.control('POST', 'forks', snapshot ? { snapshot } : {}));
  }

  async fault(rule) {
    return (await this.control('POST', 'faults', { rule })).id;
  }

  /** A request below /_zenobe/test/. */
  async control(method, path, body = {}) {
    let response;
    let answer;
    try {
      response = await fetch(`${this.endpoint}/_zenobe/test/${path}`, {
        method,
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(CONTROL_MS_MAX),
      });
      answer = await response.json();
    } catch (error) {
      throw new ControlError(`${this.endpoint} cannot be asked for ${path}: ${error.cause ?? error}`);
    }
    if (!response.ok) throw new ControlError(answer.error);
    return answer;
  }
}

/** A copy of a database. It ends with `stop`, or with the server. */
class Fork extends Database {
  #origin;
  #id;

  constructor(origin, { id, endpoint }) {
    super();
    this.#origin = origin;
    this.#id = id;
    this.endpoint = endpoint;
  }

  async stop() {
    await this.#origin.control('DELETE', `forks/${this.#id}`);
  }
}

class Server extends Database {
  #binary;
  #arguments;
  #port = 0;
  #child;

  constructor(binary, extra) {
    super();
    this.#binary = binary;
    this.#arguments = extra;
  }

  async start() {
    let said;
    for (let attempt = 0; attempt < START_ATTEMPTS_MAX; attempt += 1) {
      said = await this.#startOnce();
      if (said === undefined) return;
      if (!said.includes('in use')) break;
    }
    throw new StartError(`${this.#binary} does not start:\n${said}`);
  }

  async reset() {
    try {
      await super.reset();
    } catch {
      // It has died, or its options keep it from being controlled. A new process is empty as well.
      await this.stop();
      await this.start();
    }
  }

  /** Ends the process. There is nothing to save, so it is not asked first. */
  async stop() {
    const child = this.#child;
    this.#child = undefined;
    if (!child) return;
    running.delete(child);
    if (child.exitCode === null && child.signalCode === null) {
      child.ref();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
  }

  /** Starts the process. Resolves to what it said if it ended instead of listening. */
  #startOnce() {
    const listen = `127.0.0.1:${this.#port}`;
    const options = ['--memory', '--test-control', '--listen', listen, ...this.#arguments];
    const child = spawn(this.#binary, ['serve', ...options], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // What the developer's own server is configured with must not reach this one.
      env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('ZENOBE_'))),
    });
    this.#child = child;
    running.add(child);
    let said = '';
    let isListening = false;
    return new Promise((resolve) => {
      // A server that says nothing at all must not keep the tests waiting.
      const impatience = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX);
      const settle = (outcome) => {
        clearTimeout(impatience);
        resolve(outcome);
      };
      const hear = (text) => {
        if (isListening) return;
        said += text;
        const found = ADDRESS.exec(said);
        if (!found) return;
        isListening = true;
        [, this.endpoint] = found;
        this.#port = Number(found[2]);
        // The process and its pipes must not keep the runner alive.
        child.unref();
        child.stdout.unref();
        child.stderr.unref();
        settle(undefined);
      };
      child.stdout.setEncoding('utf8').on('data', hear);
      child.stderr.setEncoding('utf8').on('data', hear);
      child.on('error', (error) => {
        running.delete(child);
        settle(error.message);
      });
      // `close` comes after all output, so what it said is whole.
      child.on('close', () => {
        running.delete(child);
        settle(said);
      });
    });
  }
}

async function startZenobe({ binary, arguments: extra = [] } = {}) {
  const server = new Server(binary ?? (await findBinary()), extra);
  await server.start();
  return server;
}

module.exports = { ControlError, Server, StartError, startZenobe };
