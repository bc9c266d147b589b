/** There is no server to run. The message says what to do. */
export class BinaryError extends Error {}

/** The server did not start. The message holds what it said. */
export class StartError extends Error {}

/** The path of the server's executable: ZENOBE_BINARY, PATH, or ZENOBE_DOWNLOAD_URL with ZENOBE_DOWNLOAD_SHA256. */
export function findBinary(environment?: NodeJS.ProcessEnv): Promise<string>;

export interface Options {
  /** The server's executable; found by `findBinary` otherwise. */
  binary?: string;
  /** More options for `zenobe serve`, such as `['--driven-clock']`. */
  arguments?: string[];
}

/** The server refused what a test wanted of it. The message holds why. */
export class ControlError extends Error {}

/** Where a database is served, and what a test may do to it. */
export interface Database {
  readonly endpoint: string;
  /** Settings for any client of the AWS SDK for JavaScript. */
  readonly clientSettings: {
    endpoint: string;
    region: string;
    credentials: { accessKeyId: string; secretAccessKey: string };
  };
  /** Variables that make any AWS SDK use this server, for streams too. */
  readonly environment: Record<string, string>;
  /** An empty database at the same endpoint. Existing clients keep working. */
  reset(): Promise<void>;
  /** Remembers the whole database under a name. */
  snapshot(name: string): Promise<void>;
  /** Returns to a snapshot. Existing clients keep working. */
  restore(name: string): Promise<void>;
  /** A copy of the database, or of a snapshot, at an endpoint of its own. */
  fork(snapshot?: string): Promise<Fork>;
  /** Makes requests fail, wait or read old data: `fault('kind=throttle table=Orders rate=0.1')`. Gone after a reset. */
  fault(rule: string): Promise<number>;
}

/** A copy of a database. It ends with `stop`, or with the server. */
export interface Fork extends Database {
  stop(): Promise<void>;
}

/** A server process that keeps everything in memory, on a free port of 127.0.0.1. */
export class Server implements Database {
  readonly endpoint: string;
  readonly clientSettings: Database['clientSettings'];
  readonly environment: Record<string, string>;
  reset(): Promise<void>;
  snapshot(name: string): Promise<void>;
  restore(name: string): Promise<void>;
  fork(snapshot?: string): Promise<Fork>;
  fault(rule: string): Promise<number>;
  stop(): Promise<void>;
}

export function startZenobe(options?: Options): Promise<Server>;

export interface Hooks {
  beforeAll?(hook: () => Promise<void>): unknown;
  before?(hook: () => Promise<void>): unknown;
  beforeEach(hook: () => Promise<void>): unknown;
  afterAll?(hook: () => Promise<void>): unknown;
  after?(hook: () => Promise<void>): unknown;
}

/**
 * Starts a server before the tests of a file, empties it before each test, and stops it after the last. Meanwhile
 * AWS_ENDPOINT_URL_DYNAMODB and its like point to it. Without hooks, those that jest and vitest define globally are taken.
 */
export function useZenobe(hooks?: Hooks, options?: Options): Database;
