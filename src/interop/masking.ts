/** What stands where something may not be shown. */
export const MASK = '[redacted]';
