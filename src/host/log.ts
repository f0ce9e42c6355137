import pino from 'pino';
import { currentTrace } from '../telemetry/trace.js';

/** What the entries write their log with; stdout belongs to the protocol, so everything goes to stderr. */
export type Logger = pino.Logger;

/** How much is logged, as `--log-level` takes it. */
export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug';

/** What is kept of a log that cannot be written; what comes then is dropped. */
const MOST_KEPT_BYTES = 262_144;

/** The trace that a line belongs to, by OpenTelemetry's names for lines of JSON. */
function traceOfLine(): { readonly trace_id?: string; readonly span_id?: string } {
  const trace = currentTrace();
  return trace === undefined ? {} : { trace_id: trace.traceId, span_id: trace.spanId };
}

/** A logger on stderr, one line of JSON per entry. When the log cannot be written, as on a full disk, the process goes on, and so does the log once it can. */
export function createLog(level: LogLevel): Logger {
  const destination = pino.destination({ fd: 2, sync: true, maxLength: MOST_KEPT_BYTES });
  destination.on('error', () => undefined);
  return pino({ level, base: { pid: process.pid }, mixin: traceOfLine }, destination);
}
