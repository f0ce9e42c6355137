import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import type { RequestPiece } from './request-pieces.js';

/**
 * The form of an item in a request: an object's line, an object's text, a message of the chat, or
 * text without an object.
 */
export type ItemForm = 'line' | 'text' | 'message' | 'plain';

/**
 * One item of a request: a line of the pool, a block, a message, or a call of the harness's list.
 */
export interface RequestItem {
  readonly section: RequestPiece['section'];
  readonly form: ItemForm;
  readonly text: string;
  readonly object?: ObjectId;
  /** For the harness's list: the step of the message or call. */
  readonly step?: number;
  /** Length of the text as the model saw it, if it differs from the length of `text`. */
  readonly chars?: number;
}

/**
 * Returns the id that begins a line of the pool or of a note, short or full. Undefined for other
 * lines.
 */
function shownName(line: string): string | undefined {
  const [, shown] = /^id=("(?:[^"\\]|\\.)*"|\S+) type=/.exec(line) ?? [];
  return shown?.startsWith('"') ? (JSON.parse(shown) as string) : shown;
}

const HAS_LINES: ReadonlySet<string> = new Set(['pool', 'notes']);

/** Returns the object of a line by its id, which may be short. */
function namedBy(line: string, known: readonly ObjectId[], byId: ReadonlySet<string>): ObjectId | undefined {
  const name = shownName(line);
  if (name === undefined) return undefined;
  return byId.has(name) ? (name as ObjectId) : known.find((id) => id.startsWith(name));
}

/** Returns the object of the line at an offset of a list. Its short or full id begins the line. */
export function objectOfLine(
  { section, text }: RequestPiece,
  at: number,
  known: readonly ObjectId[],
): ObjectId | undefined {
  if (!HAS_LINES.has(section)) return undefined;
  const inside = text[at] === '\n' ? at + 1 : at;
  const line = text.slice(text.lastIndexOf('\n', inside - 1) + 1).split('\n', 1)[0] ?? '';
  return namedBy(line, known, new Set(known));
}

/** Splits a list into lines that name objects. The text between two such lines is one item. */
function lineItems(
  { section, text }: RequestPiece,
  known: readonly ObjectId[],
  byId: ReadonlySet<string>,
): readonly RequestItem[] {
  const items: { section: RequestPiece['section']; form: ItemForm; text: string; object?: ObjectId }[] = [];
  for (const line of text.split(/(?<=\n)/)) {
    const object = namedBy(line, known, byId);
    const last = items.at(-1);
    if (object !== undefined) items.push({ section, form: 'line', text: line, object });
    else if (last?.form === 'plain') last.text += line;
    else items.push({ section, form: 'plain', text: line });
  }
  return items;
}

/**
 * Splits a request into its items, in order. The items together have the whole text of the pieces.
 * `pool` lists the objects that the request may name.
 */
export function requestItems(pieces: readonly RequestPiece[], pool: readonly ObjectMetadata[]): readonly RequestItem[] {
  const known = pool.map(({ id }) => id);
  const byId: ReadonlySet<string> = new Set(known);
  return pieces.flatMap((piece): readonly RequestItem[] => {
    const { section, text, object, step, chars } = piece;
    if (object === undefined && HAS_LINES.has(section)) return lineItems(piece, known, byId);
    if (step !== undefined) {
      const isCall = step.call !== undefined && object === step.call.id;
      return [
        {
          section,
          text,
          step: step.seq,
          ...defined({ chars }),
          ...(isCall ? { form: 'text', object: step.call?.id as ObjectId } : { form: 'message' }),
        },
      ];
    }
    if (object !== undefined) return [{ section, form: 'text', text, object }];
    return [{ section, form: section === 'chat' ? 'message' : 'plain', text }];
  });
}
