import * as z from 'zod';
import { poolLines } from '../assembly/metadata.js';
import type { PoolEntry } from '../client/session/find-object.js';
import { hashText } from '../objects/hashes.js';
import { defineTool, type Performed, type ToolSettings, type Work } from './define-tool.js';
import { continuation, frame, frameSize, headerLine, lineRange, remaining, shownNames } from './framing.js';
import { type PageStart, pageOfPieces } from './page.js';
import type { Tool, ToolSession } from './tool.js';

const SHAPE = {
  full: z.boolean().optional().describe('Show the session as one assembled text instead of the list (default false)'),
  offset: z.int().min(1).optional().describe('First line (default 1)'),
  column: z.int().min(1).optional().describe('First character within that line (default 1)'),
};

/**
 * The text that each session was shown last. Further pages come from this text, because every call
 * changes the context.
 */
type LastShown = WeakMap<ToolSession, { readonly full: boolean; readonly text: string }>;

function sizeOf(entries: readonly PoolEntry[]): number {
  return entries.reduce((sum, { metadata }) => sum + metadata.charCount, 0);
}

/** Returns what an entry's line has in addition to its line in the pool. */
function entryEnd({ metadata, pinned, active }: PoolEntry): string {
  const size = active && metadata.type === 'toolcall' ? ` char_count=${metadata.charCount}` : '';
  return `${size}${pinned ? ' [pinned]' : ''}`;
}

function listText(pool: readonly PoolEntry[], work: Work): string {
  const nameOf = shownNames(work);
  const active = pool.filter((entry) => entry.active);
  const resting = pool.filter((entry) => !entry.active);
  const section = (title: string, entries: readonly PoolEntry[]): readonly string[] => {
    if (entries.length === 0) return [];
    const described = entries.map(({ metadata }) => metadata);
    const lines = poolLines(described, nameOf, work);
    return [title, ...entries.map((entry, i) => `${lines[i]}${entryEnd(entry)}`)];
  };
  const lines = [
    ...section(`active (${active.length} objects, ${sizeOf(active)} characters):`, active),
    ...section(`known, not active (${resting.length} objects):`, resting),
  ];
  return lines.length === 0 ? 'Nothing is known to this session yet. Read or list something.' : lines.join('\n');
}

/** The requested text, and where its page starts. */
interface Asked {
  readonly full: boolean;
  readonly start: PageStart;
}

/**
 * Returns the requested text, and the pool that it describes. The first page makes the text, and
 * further pages reuse it.
 */
async function textToShow(
  lastShown: LastShown,
  { full, start }: Asked,
  work: Work,
): Promise<{ readonly text: string; readonly pool: readonly PoolEntry[] }> {
  const { session, strict, shortIds } = work;
  const before = lastShown.get(session);
  const continues = start.offset > 1 || start.column > 1;
  if (continues && before?.full === full) return { text: before.text, pool: session.pool() };
  const assembled = full ? (await session.assemble({ strict, shortIds })).text : undefined;
  const pool = session.pool();
  const text = assembled ?? listText(pool, work);
  lastShown.set(session, { full, text });
  return { text, pool };
}

async function perform(lastShown: LastShown, asked: Asked, work: Work): Promise<Performed> {
  const { session } = work;
  const { full, start } = asked;
  const { text, pool } = await textToShow(lastShown, asked, work);
  const call = full ? { full: 'true' } : {};
  const active = pool.filter((entry) => entry.active);
  const fields = {
    session: session.id,
    turn: session.state.turn,
    known: pool.length,
    active: active.length,
    pinned: pool.filter((entry) => entry.pinned).length,
    active_chars: sizeOf(active),
  };
  const page = pageOfPieces([text], {
    start,
    limits: remaining(work.limits, frameSize('context', { ...fields, ...call }), 3),
    name: 'the context',
  });
  const sha256 = hashText(text);
  const header = headerLine('context', { ...fields, lines: lineRange(page), chars: text.length });
  return {
    // Only a hash and a length are stored. Otherwise the context would contain itself
    // (divergence B8).
    content: `${full ? 'assembled context' : 'list of the context'}: ${text.length} characters, sha256 ${sha256}`,
    show: () =>
      frame(header, page.text === '' ? '(nothing is assembled yet)' : page.text, [continuation(page, 'context', call)]),
    meta: { session: session.id, known: pool.length, active: active.length, chars: text.length, sha256 },
  };
}

/**
 * The tool `context`: lists pool and active set with their sizes. With `full`, shows the assembled
 * text [§4].
 */
export function contextTool(settings: ToolSettings): Tool {
  const lastShown: LastShown = new WeakMap();
  return defineTool({
    name: 'context',
    description:
      'List what the session knows: its active set with sizes, then all other objects. Your conversation holds ' +
      'more: every answer that your program has kept.',
    shape: SHAPE,
    annotations: { readOnlyHint: true, openWorldHint: false },
    perform: ({ full = false, offset = 1, column = 1 }, work) =>
      perform(lastShown, { full, start: { offset, column } }, work),
  })(settings);
}
