'use strict';
/*
 * The S3 store of the native throwaway stack: s3rver, signatures verified, bound to loopback.
 * Called by `sim stack up` as: node --openssl-legacy-provider run.js PORT FOLDER, the keys in STORE_ACCESS_KEY and
 * STORE_SECRET_KEY. (The legacy provider serves the DES of its continuation tokens.)
 *
 * Three repairs, so that the store behaves as S3 does where the load tests look:
 *  - a PUT appears when it is whole, or never: s3rver writes in place, and an aborted one would stay as half an object;
 *  - a DELETE costs the same in a full folder as in an empty one: s3rver reads the folder after each;
 *  - a listing asks the kernel once a folder, not once a file.
 */
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const { Transform } = require('stream');
const { pipeline } = require('stream/promises');

const [port, folder] = process.argv.slice(2);
const objects = path.join(folder, 'objects');
const incoming = path.join(folder, 'incoming');

const utils = require('@20minutes/s3rver/lib/utils');
utils.walk = function* walk(dir, recurseFilter) {
  for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
    const name = path.posix.join(dir, entry.name);
    if (!entry.isDirectory()) yield name;
    else if (!recurseFilter || recurseFilter(name)) yield* walk(name, recurseFilter);
  }
};

const Filesystem = require('@20minutes/s3rver/lib/stores/filesystem');

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
