import * as z from 'zod';
import { canonicalJson } from '../objects/canonical-json.js';
import { quoted } from '../objects/errors.js';
import { hashText } from '../objects/hashes.js';
import { ErasureError } from './erasure-error.js';

export const selectionSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('session'), session: z.string() }),
  z.strictObject({ kind: z.literal('object'), id: z.string() }),
  z.strictObject({ kind: z.literal('text'), text: z.string() }),
  /** Sessions whose last step was before this time, in milliseconds since 1970. */
  z.strictObject({ kind: z.literal('before'), at: z.int() }),
  /** Sessions that are older than the retention rules allow. */
  z.strictObject({ kind: z.literal('retention') }),
]);

/** The sessions, object or text that an order erases. */
export type Selection = Readonly<z.output<typeof selectionSchema>>;

/** The flags of `palimpsest erase` that select what to erase. */
export interface SelectionFlags {
  readonly object?: string;
  readonly session?: string;
  readonly text?: string;
  readonly retention?: boolean;
  readonly before?: string;
}

/** Minimum characters of a text to erase, not counting blanks. */
const SHORTEST_TEXT = 4;

function textSelection(text: string): Selection {
  if (text.replaceAll(/\s/g, '').length < SHORTEST_TEXT)
    throw new ErasureError(
      'matches-all',
      `${quoted(text)} has fewer than ${SHORTEST_TEXT} characters that are not blanks, so nearly every text has it: ` +
        'name a longer one',
    );
  return { kind: 'text', text };
}

function beforeSelection(date: string): Selection {
  const at = /^\d{4}-\d{2}-\d{2}/.test(date) ? Date.parse(date) : Number.NaN;
  if (Number.isNaN(at)) throw new ErasureError('usage', `${quoted(date)} is not a date: use a form like 2026-03-31`);
  if (at > Date.now())
    throw new ErasureError(
      'matches-all',
      `${date} is in the future, so every session is older: name a date in the past`,
    );
  return { kind: 'before', at };
}

/**
 * Returns the selection that the flags describe. `read` reads the text from standard input.
 * @throws {ErasureError} `usage`, `matches-all`
 */
export async function readSelection(flags: SelectionFlags, read: () => Promise<string>): Promise<Selection> {
  const given = [flags.object, flags.session, flags.text, flags.retention, flags.before].filter(
    (one) => one !== undefined,
  );
  if (given.length !== 1)
    throw new ErasureError('usage', 'name one of --session, --object, --text, --before and --retention');
  if (flags.session !== undefined) return { kind: 'session', session: flags.session };
  if (flags.object !== undefined) return { kind: 'object', id: flags.object };
  if (flags.before !== undefined) return beforeSelection(flags.before);
  if (flags.text === undefined) return { kind: 'retention' };
  return textSelection(flags.text === '-' ? (await read()).replace(/\r?\n$/, '') : flags.text);
}

/**
 * Returns a name for files about a selection, made from its hash. The name does not contain the
 * selected text.
 */
export const selectionName = (selection: Selection): string => hashText(canonicalJson(selection)).slice(0, 16);
