/**
 * Makes a write beyond the limit of the process on file sizes fail like one on a full disk (`EFBIG`): left alone, the system ends the process there, and
 * whatever it would have answered. For entries only: it is the whole process that is meant.
 */
export function refuseBeyondFileSizeLimit(): void {
  process.on('SIGXFSZ', () => undefined);
}
