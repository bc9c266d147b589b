'use strict';

// Finding the server: `ZENOBE_BINARY`, then PATH, then a download that is named together with its checksum.

const { execFile } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs/promises');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');

const DOWNLOAD_MS_MAX = 60_000;

/** There is no server to run. The message says what to do. */
class BinaryError extends Error {
  name = 'BinaryError';
}

async function findBinary(environment = process.env) {
  const named = environment.ZENOBE_BINARY;
  if (named) {
    if (!(await isExecutable(named))) {
      throw new BinaryError(`ZENOBE_BINARY names ${named}, which is not an executable file`);
    }
    return named;
  }
  for (const directory of (environment.PATH ?? '').split(path.delimiter).filter(Boolean)) {
    const installed = path.join(directory, 'zenobe');
    if (await isExecutable(installed)) return installed;
  }
  if (environment.ZENOBE_DOWNLOAD_URL) return download(environment.ZENOBE_DOWNLOAD_URL, environment);
  throw new BinaryError(
    'the zenobe binary was not found: install it, name it in ZENOBE_BINARY, or name a release archive in ' +
      'ZENOBE_DOWNLOAD_URL and its checksum in ZENOBE_DOWNLOAD_SHA256',
  );
}

/** Downloads once per checksum; what does not have the checksum is never kept. */
async function download(url, environment) {
  const expected = (environment.ZENOBE_DOWNLOAD_SHA256 ?? '').toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(expected)) {
    throw new BinaryError(
      `ZENOBE_DOWNLOAD_SHA256 must hold the 64 hexadecimal digits of the checksum of ${url}`,
    );
  }
  const home = path.join(cacheDirectory(environment), expected);
  const kept = path.join(home, 'zenobe');
  if (await isExecutable(kept)) return kept;
  await fs.mkdir(home, { recursive: true });
  const scratch = await fs.mkdtemp(path.join(home, 'download-'));
  try {
    const content = await fetchBytes(url);
    const found = createHash('sha256').update(content).digest('hex');
    if (found !== expected) {
      throw new BinaryError(
        `${url} has the checksum ${found}, and ZENOBE_DOWNLOAD_SHA256 asks for ${expected}`,
      );
    }
    const binary = await unpack(content, scratch, url);
    await fs.chmod(binary, 0o755);
    // Another process may have been faster; it renamed the same bytes.
    await fs.rename(binary, kept);
  } finally {
    await fs.rm(scratch, { recursive: true, force: true });
  }
  return kept;
}

async function fetchBytes(url) {
  let answer;
  try {
    answer = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_MS_MAX) });
    if (answer.ok) return Buffer.from(await answer.arrayBuffer());
  } catch (error) {
    throw new BinaryError(`cannot download ${url}: ${error.cause?.message ?? error.message}`);
  }
  throw new BinaryError(`cannot download ${url}: the answer was ${answer.status}`);
}

/** The binary in a release archive, or the download itself if it is no archive. */
async function unpack(content, scratch, url) {
  const file = path.join(scratch, 'download');
  await fs.writeFile(file, content);
  const isGzip = content[0] === 0x1f && content[1] === 0x8b;
  if (!isGzip) return file;
  await promisify(execFile)('tar', ['-xzf', file, '-C', scratch]);
  for (const entry of await fs.readdir(scratch, { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && entry.name === 'zenobe') return path.join(entry.parentPath ?? entry.path, entry.name);
  }
  throw new BinaryError(`the archive ${url} holds no file zenobe`);
}

function cacheDirectory(environment) {
  const base = environment.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');
  return path.join(base, 'zenobe', 'binaries');
}

async function isExecutable(file) {
  try {
    await fs.access(file, fs.constants.X_OK);
    return (await fs.stat(file)).isFile();
  } catch {
    return false;
  }
}

module.exports = { BinaryError, findBinary };
