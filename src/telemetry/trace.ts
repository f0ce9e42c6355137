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
  /** Whether the system that began the trace records it. */
  readonly sampled: boolean;
}

const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const current = new AsyncLocalStorage<TraceContext>();

/** Parses a `traceparent`. Returns undefined if it is invalid; a new trace then starts here. */
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

/** Returns a new position below a parent, or the root of a new trace if there is no parent. */
export function traceBelow(parent: TraceContext | undefined): TraceContext {
  const { traceId = randomBytes(16).toString('hex'), sampled = false } = parent ?? {};
  return { traceId, spanId: randomBytes(8).toString('hex'), sampled };
}

/** Returns the trace position of the running code. Undefined outside a trace. */
export function currentTrace(): TraceContext | undefined {
  return current.getStore();
}

/** Runs work at a trace position. All asynchronous work that it starts has this position too. */
export function withinTrace<T>(trace: TraceContext, work: () => T): T {
  return current.run(trace, work);
}
