import type { ContextRecord } from '../../objects/context-record.js';
import type { Projection } from '../../projection/project-session.js';
import { defined } from '../../values/defined.js';
import { contextFiles, fileOf, type PlacedSession, type ShownRecord } from './context-files.js';
import { eventLines } from './event-lines.js';
import { messageLines } from './message-lines.js';
import { type Pack, type PackSources, packSession } from './pack.js';
import { nameFor } from './session-paths.js';

/** What of a session's records the directory shows. */
export const SHOWN_KINDS = ['approval', 'note', 'compaction', 'missing'] as const;

/** The year 9999 stands for the newest, whatever the clocks say. */
const NEWEST_FROM = Date.UTC(9999, 0);

/** The files of a session directory, by path, each whole. */
export interface SessionDirectory {
  readonly files: ReadonlyMap<string, string>;
  readonly pack: Pack;
}

function place(projection: Projection, records: readonly ContextRecord<(typeof SHOWN_KINDS)[number]>[]): PlacedSession {
  const lines = messageLines(projection.entries);
  const lineOf = new Map(lines.map(({ entry }, i) => [entry, i + 1] as const));
  const firstLineOf = new Map(lines.map(({ entry }, i) => [entry, i + 1] as const).reverse());
  const shown = records.filter((record): record is ShownRecord => record.kind !== 'approval');
  return { projection, lines, firstLineOf, lineOf, records: shown };
}

function metaText({ session, basis, turn, seq, counter, digest }: Projection): string {
  const { validTime, txId } = basis;
  const time = validTime >= NEWEST_FROM ? undefined : new Date(validTime).toISOString();
  const palimpsest = { session, turn, seq, digest, counter: counter.name, tx_id: txId, ...defined({ valid_time: time }) };
  return `${JSON.stringify({ client: 'palimpsest', scope: 'private', palimpsest }, null, 2)}\n`;
}

/** What a pack of a session is made of. */
export function packSources(
  projection: Projection,
  records: readonly ContextRecord<(typeof SHOWN_KINDS)[number]>[],
): PackSources & { readonly placed: PlacedSession } {
  const placed = place(projection, records);
  return { session: nameFor(projection.session), files: contextFiles(placed), lines: placed.lines, placed };
}

/**
 * A session as the directory of document 000, at the basis of its projection. `messages.jsonl` and `events.jsonl` only grow from one moment to a later one, as long as nothing comes
 * late; all else is derived. Pure: equal sources give equal bytes.
 * @throws {CortexfsError} `budget-too-small`
 */
export function sessionDirectory(
  projection: Projection,
  records: readonly ContextRecord<(typeof SHOWN_KINDS)[number]>[],
  { budget = '', limit }: { readonly budget?: string; readonly limit?: number } = {},
): SessionDirectory {
  const { placed, ...sources } = packSources(projection, records);
  const { entries, running } = projection;
  const approvals = records.filter((record) => record.kind === 'approval');
  const said = entries.findLast((entry) => entry.kind === 'assistant' && entry.text !== '');
  const times = entries.filter(({ seq }) => seq > 0).map(({ at }) => at);
  const time = (ms: number | undefined): string => (ms === undefined ? '' : `${new Date(ms).toISOString()}\n`);
  const pack = packSession(sources, projection.counter, limit);
  const files = new Map([
    ['meta.json', metaText(projection)],
    ['messages.jsonl', fileOf(placed.lines.map(({ text }) => text))],
    ['events.jsonl', fileOf(eventLines(entries, approvals, placed.lineOf))],
    ['latest.md', said?.kind === 'assistant' ? said.text : ''],
    ['state', running === undefined ? 'idle\n' : 'active\n'],
    ['cwd', ''],
    ['created_at', time(times[0])],
    ['updated_at', time(times.reduce<number | undefined>((most, at) => Math.max(most ?? at, at), undefined))],
    ...sources.files,
    ['context/budget', budget],
    ['context/pack.json', pack.json],
    ['context/pack.md', pack.markdown],
  ]);
  return { files, pack };
}
