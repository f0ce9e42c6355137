/** The code of a failed system call (`ENOENT`, `EEXIST`, …); undefined for any other thrown value. */
export function systemCode(error: unknown): string | undefined {
  // Not by `instanceof`: an error of the system may come from another realm than this module.
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
