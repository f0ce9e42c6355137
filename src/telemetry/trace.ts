import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';

/**
 * A position in a trace, in the terms of W3C Trace Context. A tool call, its log lines, its journal
 * record and its transaction share a `traceId`.
 */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the originator of the trace records it. */
  readonly sampled: boolean;
}

const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const current = new AsyncLocalStorage<TraceContext>();

/**
 * Parses a `traceparent`. Returns undefined if it is invalid; such a client then starts a trace of
 * its own.
 */
export function parseTraceparent(given: unknown): TraceContext | undefined {
  if (typeof given !== 'string') return undefined;
  const [, version, traceId = '', spanId = '', flags = '', rest] = TRACEPARENT.exec(given) ?? [];
  const isKnown = version === '00' ? rest === undefined : version !== undefined && version !== 'ff';
  if (!isKnown || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Formats a position in a trace as a `traceparent`. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/** Returns a new child of a position, or the root of a new trace. */
export function traceBelow(parent: TraceContext | undefined): TraceContext {
  const { traceId = randomBytes(16).toString('hex'), sampled = false } = parent ?? {};
  return { traceId, spanId: randomBytes(8).toString('hex'), sampled };
}

/** Returns the position of the running code in a trace; undefined outside one. */
export function currentTrace(): TraceContext | undefined {
  return current.getStore();
}

/** Runs work, and all asynchronous work that it starts, at a position in a trace. */
export function withinTrace<T>(trace: TraceContext, work: () => T): T {
  return current.run(trace, work);
}
