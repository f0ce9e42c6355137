import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { codeOf, messageOf } from '../values/thrown.js';
import {
  CheckpointError,
  type CheckpointFile,
  type CheckpointStore,
  type CopiedFile,
  filesOf,
  isCheckpointName,
  MANIFEST,
} from './checkpoint.js';
import { filesBelow, writeHashed } from './folder-store.js';
import { ATTEMPTS, type S3Answer, type S3Body, type S3Requests, valuesOf } from './s3-requests.js';

interface Listed {
  /** The names of files, relative to the requested prefix. */
  readonly files: readonly string[];
  readonly folders: readonly string[];
}

const textBody = (text: string): S3Body => {
  const bytes = Buffer.from(text);
  return { size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex'), open: () => bytes };
};

async function fileBody(path: string): Promise<S3Body> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return { size: (await stat(path)).size, sha256: hash.digest('hex'), open: () => createReadStream(path) };
}

/** Decodes an object's name from a list requested with URL encoding. */
const decodedKey = (key: string): string => decodeURIComponent(key.replaceAll('+', ' '));

/**
 * Checkpoints in an S3-compatible bucket. A checkpoint exists once its manifest exists, which is
 * written last. The bucket must support conditional writes (`If-None-Match`), which elect the
 * writer.
 */
export class BucketStore implements CheckpointStore {
  readonly copiesAtOnce = 4;
  readonly address: string;
  readonly #requests: S3Requests;
  readonly #prefix: string;

  constructor(requests: S3Requests, parts: readonly string[]) {
    this.#requests = requests;
    this.#prefix = parts.map((part) => `${part}/`).join('');
    this.address = `s3://${[requests.bucket, ...parts].join('/')}`;
  }

  addressOf(path: string): string {
    return path === '' ? this.address : `${this.address}/${path}`;
  }

  async names(): Promise<readonly string[]> {
    const { files, folders } = await this.#list('', '/');
    return [...folders, ...files];
  }

  async filesBelow(path: string): Promise<readonly string[]> {
    return [...(await this.#list(`${path}/`)).files].sort();
  }

  async text(path: string): Promise<string | undefined> {
    return (await this.#found(path))?.text();
  }

  async fetch(path: string, to: string): Promise<CopiedFile> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#found(path);
      if (answer === undefined)
        throw new CheckpointError('damaged', `${this.addressOf(path)} disappeared while it was read`);
      try {
        return await writeHashed(answer.body, to);
      } catch (error) {
        // Retries a connection that broke midway. A full disk would only fail again.
        if (attempt < ATTEMPTS && codeOf(error) !== 'ENOSPC') continue;
        throw new CheckpointError('io', `${this.addressOf(path)} was not copied: ${messageOf(error)}`, {
          cause: error,
        });
      }
    }
  }

  async write(name: string, from: string, manifest: (files: readonly CheckpointFile[]) => string): Promise<void> {
    // After the removal, an interrupted write cannot leave files of two checkpoints under one
    // manifest.
    await this.remove(name);
    const limit = pLimit(this.copiesAtOnce);
    const files = await Promise.all(
      (await filesBelow(from)).map((path) =>
        limit(async () => {
          const body = await fileBody(join(from, path));
          await this.#put(`${name}/${filesOf(path)}`, body);
          return { path, size: body.size, sha256: body.sha256 };
        }),
      ),
    );
    await this.#put(`${name}/${MANIFEST}`, textBody(manifest(files)));
  }

  async remove(name: string): Promise<void> {
    await this.#delete(`${name}/${MANIFEST}`);
    for (const file of await this.filesBelow(name)) await this.#delete(`${name}/${file}`);
  }

  async createOnce(path: string, content: string): Promise<boolean> {
    if (!(await this.#createIfNone(path, content)) && (await this.text(path)) !== content) return false;
    if (!(await this.#createIfNone(path, content))) return true;
    await this.#delete(path);
    throw new CheckpointError(
      'unfit',
      `The store of ${this.address} ignores If-None-Match, so hosts could not agree on one writer. ` +
        'Use a store that supports it, or a folder.',
    );
  }

  async ageMs(path: string): Promise<number | undefined> {
    const answer = await this.#found(path);
    if (answer === undefined) return undefined;
    await answer.text();
    const [now, then] = [answer.header('date'), answer.header('last-modified')].map((text) => Date.parse(text ?? ''));
    const age = (now ?? Number.NaN) - (then ?? Number.NaN);
    if (Number.isNaN(age))
      throw new CheckpointError(
        'io',
        `the answer for ${this.addressOf(path)} lacks Date or Last-Modified, so its age is unknown`,
      );
    return age;
  }

  async removeIf(path: string, content: string): Promise<void> {
    const answer = await this.#found(path);
    if (answer === undefined || (await answer.text()) !== content) return;
    const etag = answer.header('etag');
    const headers = etag === undefined ? {} : { 'if-match': etag };
    const asked = { method: 'DELETE', key: `${this.#prefix}${path}`, headers } as const;
    const { status } = await drain(await this.#requests.send(asked, [200, 204, 400, 404, 409, 412, 501]));
    // The store has no conditional deletes. Deletes the file anyway, because it was ours a moment
    // ago.
    if (status === 400 || status === 501) await this.#delete(path);
  }

  async sweep(): Promise<void> {
    for (const name of (await this.#list('', '/')).folders)
      if (isCheckpointName(name) && (await this.text(`${name}/${MANIFEST}`)) === undefined) await this.remove(name);
  }

  async #found(path: string): Promise<S3Answer | undefined> {
    const answer = await this.#requests.send({ method: 'GET', key: `${this.#prefix}${path}` }, [200, 404]);
    if (answer.status === 200) return answer;
    const text = await answer.text();
    // A missing bucket has the same status as a missing file, but is an error.
    if (text.includes('<Code>NoSuchBucket</Code>'))
      throw new CheckpointError('io', `there is no bucket ${this.#requests.bucket}. Create it, or correct its name.`);
    return undefined;
  }

  async #list(below: string, delimiter?: string): Promise<Listed> {
    const prefix = `${this.#prefix}${below}`;
    const files: string[] = [];
    const folders: string[] = [];
    let token: string | undefined;
    do {
      const text = await this.#page(prefix, { delimiter, 'continuation-token': token });
      const [, ...shared] = text.split('<CommonPrefixes>');
      files.push(...valuesOf(text, 'Key').map((key) => decodedKey(key).slice(prefix.length)));
      folders.push(...valuesOf(shared.join(''), 'Prefix').map((key) => decodedKey(key).slice(prefix.length, -1)));
      token = valuesOf(text, 'IsTruncated')[0] === 'true' ? valuesOf(text, 'NextContinuationToken')[0] : undefined;
    } while (token !== undefined);
    return { files: files.filter((name) => name !== ''), folders };
  }

  async #page(prefix: string, more: Readonly<Record<string, string | undefined>>): Promise<string> {
    const given = Object.entries(more).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    const query = { 'list-type': '2', 'encoding-type': 'url', prefix, ...Object.fromEntries(given) };
    return (await this.#requests.send({ method: 'GET', query }, [200])).text();
  }

  /** Returns false if the file exists. */
  async #createIfNone(path: string, content: string): Promise<boolean> {
    const headers = { 'if-none-match': '*' };
    const asked = { method: 'PUT', key: `${this.#prefix}${path}`, headers, body: textBody(content) } as const;
    const answer = await drain(await this.#requests.send(asked, [200, 409, 412]));
    return answer.status === 200;
  }

  async #put(path: string, body: S3Body): Promise<void> {
    await this.#requests.send({ method: 'PUT', key: `${this.#prefix}${path}`, body }, [200]).then(drain);
  }

  async #delete(path: string): Promise<void> {
    await this.#requests.send({ method: 'DELETE', key: `${this.#prefix}${path}` }, [200, 204, 404]).then(drain);
  }
}

/** Reads an answer to its end, so that its connection is free for the next one. */
async function drain(answer: S3Answer): Promise<S3Answer> {
  await answer.text();
  return answer;
}
