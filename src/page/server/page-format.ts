/** The format name and version of a page that contains its session. */
export const PAGE_FORMAT = 'palimpsest-page';
export const PAGE_VERSION = 1;

/** The ids of the data elements in a page. `BLOCK` is followed by a number from 0. */
export const MANIFEST_ID = 'palimpsest-manifest';
export const BLOCK_ID = 'palimpsest-block-';

/**
 * A packed value: JSON in which `$` refers to deduplicated parts. A number refers to a node, and a
 * list of numbers to a list of nodes. `t` is a text in pieces, `l` a list of lists, and `o` an
 * object with its own field `$`.
 */
export type Packed =
  | null
  | boolean
  | number
  | string
  | readonly Packed[]
  | { readonly [name: string]: Packed }
  | PackedReference;

/** A reference to nodes. */
export interface PackedReference {
  readonly $:
    | number
    | readonly number[]
    | { readonly t: readonly number[] }
    | { readonly l: readonly number[] }
    | { readonly o: readonly (readonly [string, Packed])[] };
}

/** A block of nodes: a JSON list, gzipped, in base64. */
export interface PageBlock {
  /** Number of its nodes. Numbers of nodes continue from block to block. */
  readonly nodes: number;
  /** Size of its JSON. */
  readonly bytes: number;
  readonly sha256: string;
}

/** The description of a page's content. */
export interface PageManifest {
  readonly format: string;
  readonly version: number;
  readonly session: string;
  /** A fork's ancestors, the oldest first. The page has only the steps that it shares with them. */
  readonly parents?: readonly string[];
  /** The first words of the user, masked; empty if there are none. */
  readonly title?: string;
  readonly turn: number;
  /** The last step. */
  readonly step: number;
  /** The transaction at which every answer was read. */
  readonly tx: number | null;
  /** The steps of the included calls, in order. */
  readonly calls: readonly number[];
  /** Number of objects and versions that can be shown. */
  readonly objects: number;
  readonly versions: number;
  /** Number of masked places; null without a mask. */
  readonly masked: number | null;
  readonly blocks: readonly PageBlock[];
  /** Number of the node whose members are the answers by key. */
  readonly answers: number;
}

/** The parameters of a `/v1` question. */
export type AnswerParameters = Readonly<Record<string, string | number | undefined>>;

/** The session and the moment of a page, which are not part of a key. */
export type PageScope = Pick<PageManifest, 'session' | 'tx' | 'calls'>;

/** Returns the last call up to a step. */
const callAt = (calls: readonly number[], step: number): number | undefined => calls.findLast((call) => call <= step);

/** Converts a moment to the step of the last call up to it. Returns other moments unchanged. */
function atCall(moment: string | undefined, calls: readonly number[]): string {
  if (moment === undefined || moment === 'now') return `step:${calls.at(-1) ?? 0}`;
  const step = moment.startsWith('step:') ? Number(moment.slice('step:'.length)) : Number.NaN;
  return `step:${Number.isNaN(step) ? moment : (callAt(calls, step) ?? step)}`;
}

/** Formats a range of two calls; omits the first if it directly precedes the second. */
function rangeOf(range: string | undefined, calls: readonly number[]): string {
  const [from = '', to = ''] = (range ?? '..now').split('..');
  const last = atCall(to === '' ? undefined : to, calls);
  const first = from === '' ? '' : atCall(from, calls);
  const before = calls[calls.indexOf(Number(last.slice('step:'.length))) - 1];
  return `${first === `step:${before}` ? '' : first}..${last}`;
}

const AT_CALLS: ReadonlySet<string> = new Set(['/v1/request', '/v1/context', '/v1/report/detail']);

/** Returns the key of an answer in a page. Questions with the same answer have the same key. */
export function answerKey(path: string, parameters: AnswerParameters, { session, tx, calls }: PageScope): string {
  const given = new Map<string, string>();
  for (const [name, value] of Object.entries(parameters)) {
    const isOfAll =
      name === 'limit' || (name === 'session' && value === session) || (name === 'tx' && String(value) === String(tx));
    if (value !== undefined && value !== '' && !isOfAll) given.set(name, String(value));
  }
  if (AT_CALLS.has(path)) given.set('at', atCall(given.get('at'), calls));
  if (path === '/v1/changes') given.set('range', rangeOf(given.get('range'), calls));
  const sorted = [...given].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${value}`);
  return [path, ...sorted].join(' ');
}
