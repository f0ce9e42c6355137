/** What the page that holds its session calls its format, and the version that is written. */
export const PAGE_FORMAT = 'palimpsest-page';
export const PAGE_VERSION = 1;

/** The ids of what the page holds: `BLOCK` with its number, from 0. */
export const MANIFEST_ID = 'palimpsest-manifest';
export const BLOCK_ID = 'palimpsest-block-';

/**
 * A value as a page holds it: JSON, in which `$` stands for what is written once. A number is a node; a list of numbers a list of nodes; `t` a text of pieces, `l` a list of lists, `o` an object that has a
 * field `$` itself.
 */
export type Packed =
  | null
  | boolean
  | number
  | string
  | readonly Packed[]
  | { readonly [name: string]: Packed }
  | PackedReference;

/** What stands for nodes. */
export interface PackedReference {
  readonly $:
    | number
    | readonly number[]
    | { readonly t: readonly number[] }
    | { readonly l: readonly number[] }
    | { readonly o: readonly (readonly [string, Packed])[] };
}

/** A block of nodes: gzip of a list of them as JSON, in base64. */
export interface PageBlock {
  /** How many nodes it holds; they are numbered through all blocks. */
  readonly nodes: number;
  /** Of its JSON. */
  readonly bytes: number;
  readonly sha256: string;
}

/** What a page says of what it holds. */
export interface PageManifest {
  readonly format: string;
  readonly version: number;
  readonly session: string;
  readonly turn: number;
  /** The last step. */
  readonly step: number;
  /** The transaction that every answer was read at. */
  readonly tx: number | null;
  /** The steps of the calls that were answered, in their order. */
  readonly calls: readonly number[];
  /** Objects and versions that can be shown. */
  readonly objects: number;
  readonly versions: number;
  /** How many places were masked; null where nothing was to be. */
  readonly masked: number | null;
  readonly blocks: readonly PageBlock[];
  /** The node whose members are the answers by their keys. */
  readonly answers: number;
}

/** The parameters of a question of `/v1`. */
export type AnswerParameters = Readonly<Record<string, string | number | undefined>>;

/** Of a page all is read at one moment, of one session: that is no part of a key. */
export type PageScope = Pick<PageManifest, 'session' | 'tx' | 'calls'>;

/** The last call up to a step. */
const callAt = (calls: readonly number[], step: number): number | undefined => calls.findLast((call) => call <= step);

/** A moment as the step of a call; any other moment as it is. */
function atCall(moment: string | undefined, calls: readonly number[]): string {
  if (moment === undefined || moment === 'now') return `step:${calls.at(-1) ?? 0}`;
  const step = moment.startsWith('step:') ? Number(moment.slice('step:'.length)) : Number.NaN;
  return `step:${Number.isNaN(step) ? moment : (callAt(calls, step) ?? step)}`;
}

/** A range of two calls; the one before the last is not named. */
function rangeOf(range: string | undefined, calls: readonly number[]): string {
  const [from = '', to = ''] = (range ?? '..now').split('..');
  const last = atCall(to === '' ? undefined : to, calls);
  const first = from === '' ? '' : atCall(from, calls);
  const before = calls[calls.indexOf(Number(last.slice('step:'.length))) - 1];
  return `${first === `step:${before}` ? '' : first}..${last}`;
}

const AT_CALLS: ReadonlySet<string> = new Set(['/v1/request', '/v1/context', '/v1/report/detail']);

/** What an answer is called in a page: the same for questions that have the same answer there. */
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
