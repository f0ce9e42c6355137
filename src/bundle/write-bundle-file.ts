import type { Transform } from 'node:stream';
import { writeNewFile } from '../process/new-file.js';
import { systemCode } from '../process/system-error.js';
import { messageOf } from '../values/thrown.js';
import { BundleError } from './bundle-error.js';

/**
 * Calls `writeNewFile` for an exported session.
 *
 * @throws {BundleError} `file-exists`, `unusable-file`
 */
export async function writeBundleFile(
  path: string,
  parts: AsyncIterable<string>,
  through: readonly Transform[] = [],
): Promise<void> {
  try {
    await writeNewFile(path, parts, through);
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    if (code === 'EEXIST')
      throw new BundleError('file-exists', `${path} is there already, and nothing is written over: name another file`, {
        cause: error,
      });
    throw new BundleError('unusable-file', `${path} cannot be written: ${messageOf(error)}`, { cause: error });
  }
}
