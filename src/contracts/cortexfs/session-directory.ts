import type { ContextRecord } from '../../objects/context-record.js';
import { defined } from '../../values/defined.js';
import type { Projection } from '../projection/project-session.js';
import { contextFiles, fileOf, type PlacedSession, type ShownRecord } from './context-files.js';
import { eventLines } from './event-lines.js';
import { recordKey } from './import-records.js';
import { type KeptImport, keptFiles } from './kept-import.js';
import { shownEvents, shownMessages } from './kept-lines.js';
import { isAsImported, keptSources, overKept } from './kept-overlay.js';
import { type Pack, type PackSources, packSession } from './pack.js';
import { PALIMPSEST_FILE } from './palimpsest-file.js';
import { type OwnSession, palimpsestLines } from './palimpsest-lines.js';
import { nameFor } from './session-paths.js';

/** The record kinds that the directory shows. */
export const SHOWN_KINDS = ['approval', 'note', 'compaction', 'missing'] as const;

/** A `when` in the year 9999 or later means the newest state, regardless of clocks. */
const NEWEST_FROM = Date.UTC(9999, 0);

/** The complete files of a session directory, by path. */
export interface SessionDirectory {
  readonly files: ReadonlyMap<string, string>;
  readonly pack: Pack;
}

/** A record that the directory shows. */
export type DirectoryRecord = ContextRecord<(typeof SHOWN_KINDS)[number]>;

/** Optional data of a session, in addition to its projection and records. */
type KnownBeside = Partial<Pick<PlacedSession, 'contents'>> & {
  /** The stored imports of the session. */
  readonly imports?: readonly KeptImport[];
};

function place(
  projection: Projection,
  records: readonly DirectoryRecord[],
  { imports = [], contents = new Map() }: KnownBeside,
): PlacedSession {
  const lines = shownMessages(projection.entries, imports, projection.seq);
  const lineOf = new Map(lines.map(({ entry }, i) => [entry, i + 1] as const));
  const firstLineOf = new Map(lines.map(({ entry }, i) => [entry, i + 1] as const).reverse());
  const shown = records.filter((record): record is ShownRecord => record.kind !== 'approval');
  return { projection, lines, firstLineOf, lineOf, records: shown, contents };
}

function metaText({ session, basis, turn, seq, counter, digest }: Projection): string {
  const { validTime, txId } = basis;
  const time = validTime >= NEWEST_FROM ? undefined : new Date(validTime).toISOString();
  const palimpsest = {
    session,
    turn,
    seq,
    digest,
    counter: counter.name,
    tx_id: txId,
    ...defined({ valid_time: time }),
  };
  return `${JSON.stringify({ client: 'palimpsest', scope: 'private', palimpsest }, null, 2)}\n`;
}

/** Returns the input of a session's pack, including stored imports. */
export function packSources(
  projection: Projection,
  records: readonly DirectoryRecord[],
  beside: KnownBeside = {},
): PackSources & { readonly placed: PlacedSession } {
  const { imports = [] } = beside;
  const placed = place(projection, records, beside);
  const made = contextFiles(placed);
  const files = imports.length === 0 ? made : overKept(made, keptSources(imports));
  return { session: nameFor(projection.session), files, lines: placed.lines, placed };
}

/** Options of a directory. */
export interface DirectoryOptions {
  /** The text of its `context/budget`, and the token limit in it. */
  readonly budget?: string;
  readonly limit?: number;
  /** The stored imports of the session. */
  readonly imports?: readonly KeptImport[];
  /** The input of `context/palimpsest.jsonl`. Without it, the directory lacks that file. */
  readonly own?: Omit<OwnSession, 'projection'>;
}

/**
 * Returns the files of a session's directory, at the basis of its projection. `messages.jsonl` and
 * `events.jsonl` only grow over time, unless a result arrives late. All other files are derived. An
 * imported directory is returned byte for byte until the session continues. Pure: equal sources
 * give equal bytes.
 * @throws {CortexfsError} `budget-too-small`
 */
export function sessionDirectory(
  projection: Projection,
  records: readonly DirectoryRecord[],
  { budget = '', limit, imports = [], own }: DirectoryOptions = {},
): SessionDirectory {
  const { placed, ...sources } = packSources(projection, records, { imports, ...defined({ contents: own?.contents }) });
  const { entries, seq } = projection;
  const approvals = records.filter((record) => record.kind === 'approval');
  const known = new Set(imports.flatMap((one) => one.records));
  const isImported = (record: ContextRecord): boolean => known.has(recordKey(record));
  const events = shownEvents(eventLines(entries, { approvals, lineOf: placed.lineOf, isImported }), imports, seq);
  const raw = [
    ['messages.jsonl', fileOf(placed.lines.map(({ text }) => text))],
    ['events.jsonl', fileOf(events.map(({ text }) => text))],
  ] as const;
  const ownFile =
    own === undefined
      ? []
      : [[PALIMPSEST_FILE, fileOf(palimpsestLines({ projection, ...own }, placed.lines))] as const];
  const pack = packSession(sources, projection.counter, limit);
  const kept = keptFiles(imports);
  if (isAsImported(projection, records, imports)) {
    // If only the budget differs from the import's, only the budget and the pack are made again.
    const isOtherBudget = (kept.get('context/budget') ?? '') !== budget;
    const later = isOtherBudget ? packFiles(budget, pack) : [];
    const files = new Map([...kept, ...raw, ...(imports.at(-1)?.hasOwn === true ? ownFile : []), ...later]);
    return { files, pack };
  }
  const made = new Map([
    ['meta.json', metaText(projection)],
    ...raw,
    ...stateFiles(projection),
    ...sources.files,
    ...ownFile,
    ...packFiles(budget, pack),
  ]);
  return { files: imports.length === 0 ? made : overKept(made, kept), pack };
}

const packFiles = (budget: string, { json, markdown }: Pack): readonly (readonly [string, string])[] => [
  ['context/budget', budget],
  ['context/pack.json', json],
  ['context/pack.md', markdown],
];

/** Returns the small files about the session: its latest answer, state and times. */
function stateFiles({ entries, running }: Projection): readonly (readonly [string, string])[] {
  const said = entries.findLast((entry) => entry.kind === 'assistant' && entry.text !== '');
  const times = entries.filter(({ seq }) => seq > 0).map(({ at }) => at);
  const time = (ms: number | undefined): string => (ms === undefined ? '' : `${new Date(ms).toISOString()}\n`);
  return [
    ['latest.md', said?.kind === 'assistant' ? said.text : ''],
    ['state', running === undefined ? 'idle\n' : 'active\n'],
    ['cwd', ''],
    ['created_at', time(times[0])],
    ['updated_at', time(times.reduce<number | undefined>((most, at) => Math.max(most ?? at, at), undefined))],
  ];
}
