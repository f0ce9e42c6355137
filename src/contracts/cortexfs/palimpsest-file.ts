import * as z from 'zod';
import { ARGS_BOUNDS } from '../../objects/kept-args.js';
import { digestShape, STEP_SHAPES } from '../../objects/step-shapes.js';
import { isJsonObject } from '../../values/json-object.js';
import { REDACTION } from '../projection/redaction-rules.js';
import { strictJson } from './strict-json.js';

/**
 * The path of our own file, with data that CortexFS has no place for: set changes, files and
 * records of the session. Other readers of the directory can ignore this derived file.
 */
export const PALIMPSEST_FILE = 'context/palimpsest.jsonl';
/** The format version of its lines. */
export const PALIMPSEST_FORMAT = 1;

/**
 * The record kinds that an import accepts from a directory. Other kinds attest actions of programs
 * or reviewers of the database, which a file cannot prove.
 */
export const IMPORT_KINDS = ['approval', 'note', 'compaction', 'missing', 'call'] as const;

/** Returns true if our own file includes a record: a record of `IMPORT_KINDS`, or a redaction. */
export const isCarried = ({ kind, body }: { readonly kind: string; readonly body: unknown }): boolean =>
  (IMPORT_KINDS as readonly string[]).includes(kind) ||
  (kind === 'event' && isJsonObject(body) && body.type === REDACTION);

const count = z.int().nonnegative();
/** The time of imported data. It must not be in the future. */
const moment = count.refine((at) => at <= Date.now(), 'it is later than the clock of this machine');
const id = z.string().min(1).max(1_024);
const ids = z.array(id);

const step = z.strictObject({
  ...STEP_SHAPES,
  seq: z.int().positive(),
  turn: z.int().positive(),
  at: moment,
  message: z.strictObject({ role: z.string(), name: z.string().optional() }).optional(),
});

const source = z.strictObject({ type: z.literal('filesystem'), filesystemId: z.string(), path: z.string() });

const LINES = {
  head: z.strictObject({
    format: z.number(),
    session: z.string(),
    lines: count,
    sha256: digestShape,
    prompt_at: moment.optional(),
  }),
  /**
   * `lines`: the lines of the step's message, or of its call and result, from 1. They hold the
   * content. If there are no lines or another program wrote them, `said` or `made` holds the
   * content.
   */
  step: z.strictObject({
    step,
    lines: z.array(z.int().positive()).optional(),
    files: ids.optional(),
    said: z.string().optional(),
    made: z
      .strictObject({
        tool: z.string().min(1),
        args: z.record(z.string(), z.json()),
        status: z.enum(['ok', 'fail']),
        content: z.string().nullable(),
      })
      .optional(),
  }),
  file: z.strictObject({
    file: z.strictObject({
      source,
      state: z.enum(['stub', 'indexed', 'not-text', 'deleted']),
      at: moment,
      sha256: digestShape.nullable(),
      content: z.string().nullable(),
    }),
  }),
  record: z.strictObject({
    record: z
      .strictObject({
        kind: z.string(),
        turn: count,
        seq: count,
        at: moment,
        basis: z.json(),
        sources: z.json().optional(),
        body: z.json(),
      })
      .refine(isCarried, {
        path: ['kind'],
        message: `a directory may only bring records of ${IMPORT_KINDS.join(', ')} and events of type ${REDACTION}`,
      }),
  }),
} as const;

/** A parsed line of the file. `kind` is the member that identifies it. */
export type PalimpsestLine = {
  [K in keyof typeof LINES]: { readonly kind: K } & z.output<(typeof LINES)[K]>;
}[keyof typeof LINES];

/** A fault in a line of the file. */
export interface PalimpsestFault {
  readonly field: string;
  readonly message: string;
}

const kindOf = (value: unknown): keyof typeof LINES | undefined => {
  if (typeof value !== 'object' || value === null) return undefined;
  if ('format' in value) return 'head';
  return (['step', 'file', 'record'] as const).find((kind) => kind in value);
};

/** Parses one line of the file. `isFirst` marks the first line. */
export function readPalimpsestLine(text: string, isFirst: boolean): PalimpsestLine | PalimpsestFault {
  // Arguments may nest as deeply here as in calls, plus the levels of the record around them.
  const read = strictJson(text, { deepest: ARGS_BOUNDS.depth + 20 });
  if (!read.ok) return { field: '', message: read.reason };
  const kind = kindOf(read.value);
  if (isFirst !== (kind === 'head'))
    return {
      field: 'format',
      message: isFirst ? 'the first line must have the field format' : 'only the first line has the field format',
    };
  if (kind === undefined) return { field: '', message: 'it is not a step, file or record' };
  const format = kind === 'head' ? (read.value as { readonly format: unknown }).format : PALIMPSEST_FORMAT;
  if (format !== PALIMPSEST_FORMAT)
    return {
      field: 'format',
      message: `the format is ${JSON.stringify(format)}; this version reads ${PALIMPSEST_FORMAT}: update Palimpsest`,
    };
  const parsed = LINES[kind].safeParse(read.value);
  if (parsed.success) return { kind, ...parsed.data } as PalimpsestLine;
  const [issue] = parsed.error.issues;
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  const field = [...(issue?.path ?? []), ...(unknown === undefined ? [] : [unknown])].map(String).join('.');
  return {
    field,
    message:
      unknown === undefined ? `the field ${field} is not valid: ${issue?.message}` : `there is no field ${field}`,
  };
}

/** Returns true if a line could be parsed. */
export const isPalimpsestLine = (line: PalimpsestLine | PalimpsestFault): line is PalimpsestLine => 'kind' in line;
