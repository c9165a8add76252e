'use strict';
/*
 * The S3 store of the native throwaway stack: s3rver, signatures verified, bound to loopback.
 * Called by `sim stack up` as: node --openssl-legacy-provider run.js PORT FOLDER, the keys in STORE_ACCESS_KEY and
 * STORE_SECRET_KEY. (The legacy provider serves the DES of its continuation tokens.)
 *
 * Four repairs, so that the store behaves as S3 does where the load tests look:
 *  - a key is a name in its bucket: s3rver takes "../" in one as a way out of its folder;
 *  - a PUT appears when it is whole, or never: s3rver writes in place, and an aborted one would stay as half an object;
 *  - a DELETE costs the same in a full folder as in an empty one: s3rver reads the folder after each;
 *  - a listing reads the folders once, not once a page of 1000, and a key's order is the key's, not its file name's.
 */
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const { Transform } = require('stream');
const { pipeline } = require('stream/promises');

// On a full disk the log is lost, not the store.
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});

const [port, folder] = process.argv.slice(2);
const objects = path.join(folder, 'objects');
const incoming = path.join(folder, 'incoming');

const Filesystem = require('@20minutes/s3rver/lib/stores/filesystem');
const S3Error = require('@20minutes/s3rver/lib/models/error');
const S3Object = require('@20minutes/s3rver/lib/models/object');

const pathOf = Filesystem.prototype.getResourcePath;
Filesystem.prototype.getResourcePath = function getResourcePath(bucket, key, resource) {
  const parts = [bucket, ...(key || '').split('/')];
  if (bucket.includes('/') || parts.some((part) => part === '.' || part === '..' || part.includes('\0'))) {
    throw new S3Error('InvalidArgument', 'Such a key is none that this store can hold.');
  }
  return pathOf.call(this, bucket, key, resource);
};
const bucketPathOf = Filesystem.prototype.getBucketPath;
Filesystem.prototype.getBucketPath = function getBucketPath(bucket) {
  if (!/^[A-Za-z0-9]/.test(bucket) || bucket.includes('/')) {
    throw new S3Error('InvalidBucketName', 'The specified bucket is not valid.');
  }
  return bucketPathOf.call(this, bucket);
};

async function appear(from, to) {
  try {
    await fs.promises.rename(from, to);
  } catch (err) {
    if (err.code !== 'ENOENT') throw err;
    await fs.promises.mkdir(path.dirname(to), { recursive: true }); // a DELETE has just emptied the folder
    await fs.promises.rename(from, to);
  }
}

Filesystem.prototype.putContent = async function putContent(objectPath, content) {
  const temporary = path.join(incoming, crypto.randomUUID());
  const md5 = crypto.createHash('md5');
  let length = 0;
  const count = new Transform({
    transform(chunk, encoding, done) {
      md5.update(chunk);
      length += chunk.length;
      done(null, chunk);
    },
  });
  try {
    await pipeline(Buffer.isBuffer(content) ? [content] : content, count, fs.createWriteStream(temporary));
    await appear(temporary, objectPath);
  } catch (err) {
    await fs.promises.rm(temporary, { force: true });
    throw err;
  }
  return [length, md5.digest('hex')];
};

Filesystem.prototype.deleteObject = async function deleteObject(bucket, key) {
  const parts = ['object', 'object.md5', 'metadata.json'];
  await Promise.all(parts.map((part) => fs.promises.rm(this.getResourcePath(bucket, key, part), { force: true })));
  const top = this.getBucketPath(bucket);
  for (let dir = path.dirname(path.join(top, key)); dir !== top; dir = path.dirname(dir)) {
    try {
      await fs.promises.rmdir(dir);
    } catch (err) {
      if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(err.code)) throw err;
      if (err.code !== 'ENOENT') break;
    }
  }
};

const SUFFIX = '._S3rver_object';

function* keysBelow(dir, before, prefix) {
  for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
    const key = before + entry.name;
    if (entry.isDirectory()) {
      if (prefix.startsWith(`${key}/`) || `${key}/`.startsWith(prefix)) {
        yield* keysBelow(path.join(dir, entry.name), `${key}/`, prefix);
      }
    } else if (key.endsWith(SUFFIX) && key.startsWith(prefix)) {
      yield key.slice(0, -SUFFIX.length);
    }
  }
}

function firstAfter(keys, key) {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] <= key) low = middle + 1;
    else high = middle;
  }
  return low;
}

async function statOf(store, bucket, key) {
  try {
    const stat = await fs.promises.stat(store.getResourcePath(bucket, key, 'object'));
    const metadata = { 'content-length': stat.size, 'last-modified': stat.mtime.toUTCString() };
    return new S3Object(bucket, key, null, metadata);
  } catch (err) {
    if (err.code !== 'ENOENT') throw err; // deleted since the first page
    return undefined;
  }
}

const snapshots = new Map(); // of the keys when the first page was asked for: the later pages are cut from it
const listAnew = Filesystem.prototype.listObjects;
Filesystem.prototype.listObjects = async function listObjects(bucket, options) {
  const { delimiter, startAfter = '', prefix = '', maxKeys = 1000 } = options;
  if (delimiter) return listAnew.call(this, bucket, options);
  const name = `${bucket}/${prefix}`;
  if (!startAfter || !snapshots.has(name)) {
    snapshots.set(name, [...keysBelow(this.getBucketPath(bucket), '', prefix)].sort());
  }
  const keys = snapshots.get(name);
  let at = firstAfter(keys, startAfter);
  let found = [];
  while (found.length === 0 && at < keys.length) { // a page is never empty while there is more
    const page = keys.slice(at, at + maxKeys);
    found = (await Promise.all(page.map((key) => statOf(this, bucket, key)))).filter(Boolean);
    at += page.length;
  }
  const isTruncated = at < keys.length;
  if (!isTruncated) snapshots.delete(name);
  return { objects: found, commonPrefixes: [], isTruncated };
};

const { DUMMY_ACCOUNT } = require('@20minutes/s3rver/lib/models/account');
DUMMY_ACCOUNT.revokeAccessKey('S3RVER');
DUMMY_ACCOUNT.createKeyPair(process.env.STORE_ACCESS_KEY, process.env.STORE_SECRET_KEY);

fs.mkdirSync(objects, { recursive: true });
fs.rmSync(incoming, { recursive: true, force: true });
fs.mkdirSync(incoming);

const S3rver = require('@20minutes/s3rver');
const store = new S3rver({
  address: '127.0.0.1',
  port: Number(port),
  directory: objects,
  silent: true,
  vhostBuckets: false,
});
store.on('error', (err) => {
  if (err.code !== 'ECONNRESET' && (err.status || 500) >= 500) console.error(err);
});
store.run((err) => {
  if (err) {
    console.error(`store: ${err.message}`);
    process.exit(1);
  }
  // Clients keep connections; a long upload is not an attack.
  store.httpServer.keepAliveTimeout = 600 * 1000;
  store.httpServer.requestTimeout = 0;
  console.error(`store: listening on 127.0.0.1:${port}`);
});
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
