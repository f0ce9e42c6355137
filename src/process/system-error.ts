import { codeOf } from '../values/thrown.js';

/** The code of a failed system call (`ENOENT`, `EEXIST`, …); undefined for any other thrown value, also for one of our own errors. */
export function systemCode(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'syscall' in error ? codeOf(error) : undefined;
}

/** What a call on a file or folder gives; undefined where there is none of that name. Rejects with every other failure. */
export async function unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Makes a write beyond the process's limit on file sizes fail like one on a full disk (`EFBIG`); without it the system ends the process at that write.
 * It changes the whole process, so only entries call it.
 */
export function refuseBeyondFileSizeLimit(): void {
  process.on('SIGXFSZ', () => undefined);
}
