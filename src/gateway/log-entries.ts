import * as z from 'zod';
import type { AnswerFacts } from './answer-facts.js';
import type { Wire } from './wires.js';

/** The format version of the log. A reader ignores files of a later version. */
export const LOG_FORMAT = 1;

/** The first byte of a frame's payload, which says whether an entry or a span follows. */
export const ENTRY = { json: 1, span: 2 } as const;

/** The first entry of a log file. */
export interface LogHead {
  readonly kind: 'head';
  readonly format: number;
  readonly pid: number;
  readonly started: string;
}

/** The spans that make up a text, as runs of consecutive entry numbers. */
export type SpanRuns = readonly (readonly [first: number, last: number])[];

/** A text in the log. `bytes` is its size. */
export interface LoggedText {
  readonly spans: SpanRuns;
  readonly bytes: number;
}

/** How a steering gateway sent a request. */
export interface SteerFacts {
  /** The control arm's requests are never changed. */
  readonly arm: 'steered' | 'control';
  readonly how: 'steered' | 'continued' | 'own' | 'exact';
  /** Why the request was sent without our context. */
  readonly why?: string;
  /** How long the request waited for its context, in milliseconds. */
  readonly ms: number;
  /** Size of the client's own body. */
  readonly bytes: number;
}

/**
 * A request, logged before it is forwarded. `spans` make up its body. A span that an earlier
 * request wrote is only referred to.
 */
export interface LoggedRequest {
  readonly kind: 'request';
  /** Time of arrival, in milliseconds since 1970. */
  readonly at: number;
  readonly wire: Wire;
  readonly upstream: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly spans: SpanRuns;
  /** Size of the recorded body. */
  readonly bytes: number;
  /**
   * Present if the body was sent encoded. The recorded body is the decoded one, or the encoded
   * bytes if this Node cannot decode them.
   */
  readonly encoded?: { readonly by: string; readonly bytes: number; readonly isDecoded: boolean };
  /** Present if the gateway steers. The recorded body is the one that was sent. */
  readonly steer?: SteerFacts;
  /**
   * The client's own body. Present if another body was sent while the session's steps were not yet
   * recorded. A later gateway records the steps from it.
   */
  readonly own?: LoggedText;
}

/** The end of a request. `request` is the number of that request's entry. */
export interface LoggedAnswer {
  readonly kind: 'answer';
  readonly request: number;
  readonly at: number;
  /** Absent if the client disconnected, or the upstream could not be reached. */
  readonly facts?: AnswerFacts;
  /**
   * The answer's blocks or items as JSON. Present if a later request may continue the answer
   * without repeating it.
   */
  readonly kept?: LoggedText;
}

/** An entry of the log that is not a span. */
export type LogEntry = LogHead | LoggedRequest | LoggedAnswer;

const number = z.int().nonnegative();
const runs = z.array(z.tuple([number, number]));
const text = z.object({ spans: runs, bytes: number });

const entrySchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('head'), format: number, pid: number, started: z.string() }),
  z.object({
    kind: z.literal('request'),
    at: number,
    wire: z.enum(['anthropic', 'responses', 'chat', 'gemini']),
    upstream: z.string(),
    path: z.string(),
    headers: z.record(z.string(), z.string()),
    spans: runs,
    bytes: number,
    encoded: z.object({ by: z.string(), bytes: number, isDecoded: z.boolean() }).optional(),
    steer: z
      .object({
        arm: z.enum(['steered', 'control']),
        how: z.enum(['steered', 'continued', 'own', 'exact']),
        why: z.string().optional(),
        ms: z.number(),
        bytes: number,
      })
      .optional(),
    own: text.optional(),
  }),
  z.object({
    kind: z.literal('answer'),
    request: number,
    at: number,
    facts: z.looseObject({ status: number }).optional(),
    kept: text.optional(),
  }),
]);

/** Parses an entry. Undefined if the entry is damaged or its kind is unknown to this version. */
export function parseEntry(payload: Buffer): LogEntry | undefined {
  try {
    return entrySchema.parse(JSON.parse(payload.toString('utf8', 1))) as LogEntry;
  } catch {
    return undefined;
  }
}

const KIND_BYTES = { json: Buffer.of(ENTRY.json), span: Buffer.of(ENTRY.span) };

/** Returns the payload of an entry, in parts. */
export const entryPayload = (entry: LogEntry): readonly Buffer[] => [
  KIND_BYTES.json,
  Buffer.from(JSON.stringify(entry)),
];

/** Returns the payload of a span, in parts. */
export const spanPayload = (span: Buffer): readonly Buffer[] => [KIND_BYTES.span, span];
