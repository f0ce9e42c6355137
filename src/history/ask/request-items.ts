import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId } from '../../objects/ids.js';
import type { RequestPiece } from './request-pieces.js';

/** How something stands in a request: as a line that names it, with its text, as a message of the chat, or as text that belongs to no object. */
export type ItemForm = 'line' | 'text' | 'message' | 'plain';

/** A part of a request that is one thing: a line of the pool, a block, a message, a call of the harness's own list. */
export interface RequestItem {
  readonly section: RequestPiece['section'];
  readonly form: ItemForm;
  readonly text: string;
  readonly object?: ObjectId;
  /** Of the harness's own list: the step of the message or call. */
  readonly step?: number;
}

/** The id that a line of the pool or of a note begins with, as it is shown; undefined for another line. */
function shownName(line: string): string | undefined {
  const [, shown] = /^id=("(?:[^"\\]|\\.)*"|\S+) type=/.exec(line) ?? [];
  return shown?.startsWith('"') ? (JSON.parse(shown) as string) : shown;
}

const HAS_LINES: ReadonlySet<string> = new Set(['pool', 'notes']);

/** The object of a line by the id in it, which may be a short one. */
function namedBy(line: string, known: readonly ObjectId[], byId: ReadonlySet<string>): ObjectId | undefined {
  const name = shownName(line);
  if (name === undefined) return undefined;
  return byId.has(name) ? (name as ObjectId) : known.find((id) => id.startsWith(name));
}

/** The object whose line a place in a list of lines belongs to: its short or full id stands first in it. */
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

/** Lines that name objects each by themselves; what stands between them in one piece. */
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

/** The parts of a request one by one, in its order; together they are its pieces. `pool`: the objects that it may name. */
export function requestItems(pieces: readonly RequestPiece[], pool: readonly ObjectMetadata[]): readonly RequestItem[] {
  const known = pool.map(({ id }) => id);
  const byId: ReadonlySet<string> = new Set(known);
  return pieces.flatMap((piece): readonly RequestItem[] => {
    const { section, text, object, step } = piece;
    if (object === undefined && HAS_LINES.has(section)) return lineItems(piece, known, byId);
    if (step !== undefined) {
      const isCall = step.call !== undefined && object === step.call.id;
      return [
        {
          section,
          text,
          step: step.seq,
          ...(isCall ? { form: 'text', object: step.call?.id as ObjectId } : { form: 'message' }),
        },
      ];
    }
    if (object !== undefined) return [{ section, form: 'text', text, object }];
    return [{ section, form: section === 'chat' ? 'message' : 'plain', text }];
  });
}
