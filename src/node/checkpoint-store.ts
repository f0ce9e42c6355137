import { resolve } from 'node:path';
import { CheckpointError, type CheckpointStore, type StoreEnvironment } from './checkpoint.js';
import { FolderStore } from './folder-store.js';

const BUCKET = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/s;

/**
 * Returns the checkpoint store that a text names: a folder, or `s3://BUCKET/PREFIX` of an
 * S3-compatible store, configured by AWS's environment variables. Makes no request yet.
 * @throws {CheckpointError} io – the text is not a place for checkpoints, or required variables are
 *   missing
 */
export async function checkpointStore(text: string, environment: StoreEnvironment): Promise<CheckpointStore> {
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(text)) return new FolderStore(resolve(text));
  const [, bucket, path = ''] = BUCKET.exec(text) ?? [];
  const parts = path.split('/').filter((part) => part !== '');
  if (bucket === undefined || parts.some((part) => part === '.' || part === '..' || /\p{Cc}/u.test(part))) {
    throw new CheckpointError(
      'io',
      `${JSON.stringify(text)} is not a place for checkpoints. Name a folder, or s3://BUCKET/PREFIX`,
    );
  }
  // The code that signs and sends requests is loaded on demand.
  const [{ BucketStore }, { S3Requests }] = await Promise.all([
    import('./bucket-store.js'),
    import('./s3-requests.js'),
  ]);
  return new BucketStore(new S3Requests(bucket, environment), parts);
}
