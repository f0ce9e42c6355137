import { resolve } from 'node:path';
import { CheckpointError, type CheckpointStore, type StoreEnvironment } from './checkpoint.js';
import { FolderStore } from './folder-store.js';

const BUCKET = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/s;

/**
 * The place that a text names: a folder, or `s3://BUCKET/PREFIX` of a store like S3, which is reached as the variables of AWS say. Nothing is asked of it yet.
 * @throws {CheckpointError} io – it names no place, or the variables lack what is needed
 */
export async function checkpointStore(text: string, environment: StoreEnvironment): Promise<CheckpointStore> {
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(text)) return new FolderStore(resolve(text));
  const [, bucket, path = ''] = BUCKET.exec(text) ?? [];
  const parts = path.split('/').filter((part) => part !== '');
  if (bucket === undefined || parts.some((part) => part === '.' || part === '..' || /\p{Cc}/u.test(part))) {
    throw new CheckpointError('io', `${JSON.stringify(text)} is no place for checkpoints: name a folder, or s3://BUCKET/PREFIX`);
  }
  // What signs and sends requests is loaded when somebody asks for it.
  const [{ BucketStore }, { S3Requests }] = await Promise.all([import('./bucket-store.js'), import('./s3-requests.js')]);
  return new BucketStore(new S3Requests(bucket, environment), parts);
}
