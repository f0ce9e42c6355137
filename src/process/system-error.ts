/** The code of a failed system call (`ENOENT`, `EEXIST`, …); undefined for any other thrown value. */
export function systemCode(error: unknown): string | undefined {
  // Not by `instanceof`: an error of the system may come from another realm than this module.
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * Makes a write beyond the limit of the process on file sizes fail like one on a full disk (`EFBIG`): left alone, the system ends the process there, and
 * whatever it would have answered. For entries only: it is the whole process that is meant.
 */
export function refuseBeyondFileSizeLimit(): void {
  process.on('SIGXFSZ', () => undefined);
}
