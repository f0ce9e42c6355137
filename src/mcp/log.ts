import pino from 'pino';

/** What the entries write their log with; stdout belongs to the protocol, so everything goes to stderr. */
export type Logger = pino.Logger;

/** The levels that `--log-level` takes. */
export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const;
/** How much is logged. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A logger on stderr, one line of JSON per entry. */
export function createLog(level: LogLevel): Logger {
  return pino({ level, base: { pid: process.pid } }, pino.destination({ fd: 2, sync: true }));
}
