import { type Column, fittedTable, wrapped } from '../cli/fitted-table.js';
import { type Colours, coloursFor, grouped, printJson, standardOutput, tell, writeOutput } from '../cli/output.js';
import { homeless, localDay, shortBytes, shortTime } from '../cli/shown-values.js';
import { openStore } from '../host/open-store.js';
import { settingsOfPast } from '../host/past-settings.js';
import { readSettings } from '../host/settings.js';
import { defaultCacheDir } from '../node/choose-runtime.js';
import { clientFolder } from '../process/data-folder.js';
import { type SessionRow, SessionRows } from '../review/rows/session-rows.js';
import { ownMember } from '../values/own-member.js';
import { messageOf } from '../values/thrown.js';
import { type ContentSpace, contentSpace, sumOf } from './content-space.js';
import { type DiskPlace, diskPlaces, rewrittenBytes } from './disk-places.js';
import { Inventory } from './inventory.js';
import { planSessions } from './make-plan.js';
import { DAY_MS, readRetention } from './retention.js';

/** Flags of `palimpsest disk`. */
export interface DiskFlags {
  readonly limit?: number;
  readonly data?: string;
  readonly json?: boolean;
  readonly pager?: boolean;
}

/** A command or action of the user, and the bytes of disk that it would free. */
interface Measure {
  readonly what: string;
  readonly how: string;
  /** Null if the erasure would be refused. */
  readonly frees: number | null;
  /** Why the erasure would be refused. */
  readonly refused?: string;
}

/** Default of `--limit`: the maximum number of sessions in the report. */
const SHOWN = 15;
/**
 * Ages in days. For each age, the report shows how much space erasing older sessions would free.
 */
const ERASED_AGES = [365, 90, 30] as const;

const KIND_NAMES: Readonly<Record<string, string>> = {
  chunk: 'long texts: files, outputs, messages',
  chunks: 'lists of chunks of long texts',
  step: 'steps and messages',
  steps: 'pages of steps',
  toolcall: 'calls',
  file: 'versions of files',
  assembly: 'records of contexts',
  record: 'records of harnesses',
  snapshot: 'active and pinned sets at a step',
  session: 'heads of sessions',
  chat: 'chats',
  system_prompt: 'system prompts',
};

/**
 * Returns the measures that erase sessions, with the sizes of their plans. `scale` is the bytes of
 * disk per byte of content.
 */
async function eraseMeasures(
  inventory: Inventory,
  { dataDir, now, scale }: { readonly dataDir: string; readonly now: number; readonly scale: number },
): Promise<readonly Measure[]> {
  const rules = await readRetention(dataDir);
  const orders = [
    ...(rules.length === 0
      ? []
      : [
          {
            what: 'erase sessions past their retention',
            flags: '--retention',
            selection: { kind: 'retention' } as const,
          },
        ]),
    ...ERASED_AGES.map((days) => ({
      what: `erase sessions without a step for ${days} days`,
      flags: `--before ${localDay(new Date(now - days * DAY_MS))}`,
      selection: { kind: 'before', at: now - days * DAY_MS } as const,
    })),
  ];
  return orders.map(({ what, flags, selection }): Measure => {
    const how = `palimpsest erase ${flags} --plan`;
    try {
      return { what, how, frees: Math.round(planSessions(inventory, selection, rules).bytes * scale) };
    } catch (error) {
      return { what, how, frees: null, refused: messageOf(error) };
    }
  });
}

interface Report {
  readonly dataDir: string;
  readonly places: readonly DiskPlace[];
  readonly content: ContentSpace;
  /** Bytes of disk per byte of content. */
  readonly scale: number;
  readonly measures: readonly Measure[];
  readonly rows: ReadonlyMap<string, SessionRow>;
}

async function reportOn(flags: DiskFlags): Promise<Report> {
  const settings = await settingsOfPast(readSettings(process.env, flags));
  const { dataDir, cacheDir = defaultCacheDir() } = settings.node;
  const { store, log, close } = await openStore(settings, tell);
  try {
    const now = Date.now();
    const inventory = await Inventory.read(log);
    const content = contentSpace(inventory, now);
    const snapshot = await store.latest();
    const list = new SessionRows(dataDir, clientFolder(dataDir, settings.nodeUrl));
    const shown = new Set<string>(content.sessions.slice(0, flags.limit ?? SHOWN).map(({ id }) => id));
    const [places, rewritten, listed] = await Promise.all([
      diskPlaces({ dataDir, cacheDir }),
      rewrittenBytes(dataDir),
      list.list(snapshot).then((rows) =>
        list.described(
          snapshot,
          rows.filter(({ id }) => shown.has(id)),
        ),
      ),
    ]);
    const database = sumOf(places.filter(({ name }) => name === 'database'));
    const scale = database === 0 || content.bytes === 0 ? 1 : Math.max(0, database - rewritten) / content.bytes;
    const measures: readonly Measure[] = [
      ...(await eraseMeasures(inventory, { dataDir, now, scale })),
      {
        what: "rewrite the database's files: at least its logs",
        how: 'palimpsest erase --sweep',
        frees: rewritten,
      },
      ...places.flatMap(({ name, bytes, frees }) =>
        frees === undefined ? [] : [{ what: name, how: frees, frees: bytes }],
      ),
    ];
    return { dataDir, places, content, scale, measures, rows: new Map(listed.map((row) => [row.id, row])) };
  } finally {
    await close();
  }
}

const AT_RIGHT = { align: 'right' } as const;
const nameOfAge = (days: number | undefined): string =>
  days === undefined ? 'older than a year' : days === 1 ? 'within a day' : `within ${days} days`;

function tables(
  report: Report,
  limit: number,
  place: { readonly colours: Colours; readonly width: number | undefined },
) {
  const { places, content, measures, rows, scale, dataDir } = report;
  const size = (bytes: number): string => shortBytes(Math.round(bytes));
  const table = (columns: readonly Column[], cells: readonly (readonly string[])[]): readonly string[] =>
    cells.length === 0 ? [] : ['', ...fittedTable(columns, cells, place)];
  const now = new Date();
  const sessions = content.sessions.slice(0, limit);
  const left = content.sessions.length - sessions.length;
  return [
    ...wrapped(
      `${homeless(dataDir)} and the cache take ${size(sumOf(places))}. ${size(content.bytes)} of it are content ` +
        `of ${grouped(content.sessions.length)} sessions, before compression and indexes.`,
      place.width,
    ),
    ...table(
      [{ heading: 'on disk', ...AT_RIGHT }, { heading: 'what' }, { heading: 'bounded by', share: 1, least: 20 }],
      places.map(({ bytes, name, bound }) => [size(bytes), name, bound]),
    ),
    ...table(
      [{ heading: 'content', ...AT_RIGHT }, { heading: 'documents', ...AT_RIGHT }, { heading: 'kind' }],
      content.kinds.map(({ type, documents, bytes }) => [
        size(bytes),
        grouped(documents),
        ownMember(KIND_NAMES, type) ?? type,
      ]),
    ),
    ...table(
      [{ heading: 'content', ...AT_RIGHT }, { heading: 'sessions', ...AT_RIGHT }, { heading: 'last used' }],
      [
        ...content.ages.map((age) => [size(age.bytes), grouped(age.sessions), nameOfAge(age.days)]),
        [size(content.shared), '', 'needed by several sessions, or by none'],
      ],
    ),
    ...table(
      [
        { heading: 'content', ...AT_RIGHT },
        { heading: 'title', share: 1, least: 12 },
        { heading: 'agent', rank: 2 },
        { heading: 'last used', rank: 1 },
        { heading: 'session', share: 1, least: 11, keep: 'ends', style: 'dim' },
      ],
      sessions.map(({ id, bytes, lastAt }) => {
        const { title = '', agent = '' } = rows.get(id) ?? {};
        return [size(bytes), title === '' ? '(no prompt)' : title, agent, shortTime(new Date(lastAt), now), id];
      }),
    ),
    ...(left > 0 ? wrapped(`and ${grouped(left)} smaller sessions (--limit)`, place.width) : []),
    ...table(
      [
        { heading: 'frees', ...AT_RIGHT },
        { heading: 'measure', share: 3, least: 12 },
        // In 80 columns, `palimpsest erase --before 2026-11-01 --plan` is not cut.
        { heading: 'how', share: 5, least: 43 },
      ],
      measures
        .filter(({ frees }) => frees !== 0)
        .map(({ frees, what, how, refused }) => [
          frees === null ? 'refused' : how.startsWith('palimpsest erase') ? `~${size(frees)}` : size(frees),
          refused ?? what,
          how,
        ]),
    ),
    ...wrapped(
      `A figure with ~ is an estimate: content takes ${scale.toFixed(2)} times its size on this disk. ` +
        'Nothing was changed.',
      place.width,
    ),
  ];
}

/** `palimpsest disk` */
export async function diskAction(flags: DiskFlags): Promise<void> {
  const report = await reportOn(flags);
  const { limit = SHOWN } = flags;
  if (flags.json !== true) {
    const target = standardOutput(flags);
    await writeOutput(tables(report, limit, { colours: coloursFor(target), width: target.width }), target);
    return;
  }
  const { dataDir, places, content, measures, rows, scale } = report;
  printJson({
    dataDir,
    bytes: sumOf(places),
    places,
    content: { bytes: content.bytes, shared: content.shared, diskPerByte: Number(scale.toFixed(3)) },
    kinds: content.kinds,
    ages: content.ages.map(({ days, ...age }) => ({ withinDays: days ?? null, ...age })),
    sessions: content.sessions.slice(0, limit).map(({ id, lastAt, bytes }) => {
      const { title = '', agent, folder } = rows.get(id) ?? {};
      return {
        session: id,
        title,
        agent: agent ?? null,
        folder: folder ?? null,
        lastActivity: new Date(lastAt).toISOString(),
        bytes,
        frees: Math.round(bytes * scale),
      };
    }),
    measures,
  });
}
