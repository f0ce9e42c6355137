import pino from 'pino';
import { currentTrace } from '../telemetry/trace.js';

/** The logger of the entry points. It writes to stderr, because stdout belongs to the protocol. */
export type Logger = pino.Logger;

/** The log level, as `--log-level` takes it. */
export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug';

/** Maximum bytes buffered while the log cannot be written; later lines are dropped. */
const MOST_KEPT_BYTES = 262_144;

/** The trace of a log line, under OpenTelemetry's names for JSON logs. */
function traceOfLine(): { readonly trace_id?: string; readonly span_id?: string } {
  const trace = currentTrace();
  return trace === undefined ? {} : { trace_id: trace.traceId, span_id: trace.spanId };
}

/**
 * Creates a logger on stderr with one line of JSON per entry. If the log cannot be written, for
 * example on a full disk, the process continues. Logging resumes once it can.
 */
export function createLog(level: LogLevel): Logger {
  const destination = pino.destination({ fd: 2, sync: true, maxLength: MOST_KEPT_BYTES });
  destination.on('error', () => undefined);
  return pino({ level, base: { pid: process.pid }, mixin: traceOfLine }, destination);
}
