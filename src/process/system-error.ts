import { codeOf } from '../values/thrown.js';

/**
 * Returns the code of a failed system call (`ENOENT`, `EEXIST`, …); undefined for any other thrown
 * value, including our own errors.
 */
export function systemCode(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'syscall' in error ? codeOf(error) : undefined;
}

/**
 * Returns the result of a file or folder operation; undefined if the name does not exist. Rejects
 * with every other failure.
 */
export async function unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Makes a write beyond the process's file size limit fail with `EFBIG`, like one on a full disk.
 * Otherwise the system kills the process at that write. Affects the whole process, so only entry
 * points call it.
 */
export function refuseBeyondFileSizeLimit(): void {
  process.on('SIGXFSZ', () => undefined);
}
