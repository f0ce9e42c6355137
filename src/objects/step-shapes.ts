import * as z from 'zod';
import type { HistoryEventKind } from './step.js';

const count = z.int().nonnegative();
const ids = z.array(z.string().min(1).max(1_100));
const text = z.string();

const EVENT_KINDS: Readonly<Record<HistoryEventKind, true>> = {
  compacted: true,
  shortened: true,
  diverged: true,
  forked: true,
  paused: true,
  resumed: true,
  bypassed: true,
  lost: true,
};

/** A SHA-256 digest. */
export const digestShape = z.string().regex(/^[0-9a-f]{64}$/, 'no SHA-256');

/** Schemas of a step's fields as read from a file, except its position, time and message. */
export const STEP_SHAPES = {
  opens: z
    .strictObject({ rule: z.enum(['user-message', 'client-turn', 'pause', 'first-step']), ref: text.optional() })
    .optional(),
  call: z
    .strictObject({
      id: z.string().min(1).max(1_100),
      answer: z
        .strictObject({
          sha256: digestShape,
          chars: count,
          pieces: z.array(z.union([text, z.strictObject({ at: count, chars: count, id: text.optional() })])).optional(),
        })
        .optional(),
      by: count.optional(),
    })
    .optional(),
  changes: z.strictObject({
    index: ids.optional(),
    activate: ids.optional(),
    deactivate: ids.optional(),
    pin: ids.optional(),
    unpin: ids.optional(),
  }),
  fresh: ids.optional(),
  native: text.optional(),
  usage: z
    .strictObject({
      input: count.optional(),
      output: count.optional(),
      cacheRead: count.optional(),
      cacheWrite: count.optional(),
      cacheWriteHour: count.optional(),
      cacheMiss: z.strictObject({ reason: text, tokens: count.optional() }).optional(),
      thinkingDropped: count.optional(),
      model: text.optional(),
      cost: z.number().nonnegative().optional(),
    })
    .optional(),
  event: z
    .strictObject({
      kind: z.enum(Object.keys(EVENT_KINDS) as [HistoryEventKind, ...HistoryEventKind[]]),
      kept: count.optional(),
      missing: count.optional(),
      keptFrom: count.optional(),
      gone: z.array(count).optional(),
      detail: text.optional(),
    })
    .optional(),
  notes: z.array(text).optional(),
} as const;
