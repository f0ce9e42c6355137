import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';

/**
 * A place in a trace, in the terms of W3C Trace Context: what a tool call, its log lines, its record in the journal and its transaction have in common is
 * `traceId`.
 */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether whoever began the trace records it. */
  readonly sampled: boolean;
}

const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const current = new AsyncLocalStorage<TraceContext>();

/** Reads a `traceparent`; undefined for whatever is none, so that a client that sends nonsense begins a trace of its own. */
export function parseTraceparent(given: unknown): TraceContext | undefined {
  if (typeof given !== 'string') return undefined;
  const [, version, traceId = '', spanId = '', flags = '', rest] = TRACEPARENT.exec(given) ?? [];
  const isKnown = version === '00' ? rest === undefined : version !== undefined && version !== 'ff';
  if (!isKnown || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** A place in a trace as a `traceparent`. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/** A new place below another one, or at the beginning of a trace of its own. */
export function traceBelow(parent: TraceContext | undefined): TraceContext {
  const { traceId = randomBytes(16).toString('hex'), sampled = false } = parent ?? {};
  return { traceId, spanId: randomBytes(8).toString('hex'), sampled };
}

/** Where in a trace the running code is; undefined where nobody began one. */
export function currentTrace(): TraceContext | undefined {
  return current.getStore();
}

/** Runs work, with all that it starts, at a place in a trace. */
export function withinTrace<T>(trace: TraceContext, work: () => T): T {
  return current.run(trace, work);
}
