import { command } from './command.js';

/** The name of every view, in navigation order. */
export const VIEWS = {
  sessions: 'Sessions',
  conversation: 'Conversation',
  strip: 'Context',
  request: 'Call',
  changes: 'What changed',
  money: 'Money',
  files: 'Files',
  object: 'File',
  search: 'Search',
  compare: 'Compare',
  notes: 'Notes and sharing',
  query: 'Query',
} as const;

/** A view of the page. */
export type ViewName = keyof typeof VIEWS;

/**
 * An address within the page: a view and its parameters, including the transaction of its reads.
 */
export interface Address {
  readonly view: ViewName;
  readonly of: Readonly<Record<string, string>>;
}

/** The prefix of the page's addresses: its path on a server, or the fragment in a file. */
let base = '/review/';
/** Fixed parameters that addresses leave out. */
let always: Address['of'] = {};

/** The parts of a browser location that an address uses. */
interface Placed {
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
}

/** Sets the prefix of the page's addresses: `#/` in a file. */
export function beginAt(where: string, fixed: Address['of'] = {}): void {
  [base, always] = [where, fixed];
}

/** Whether a browser address belongs to the page. */
export const isOwn = ({ pathname, hash }: Pick<Placed, 'pathname' | 'hash'>): boolean =>
  (base.startsWith('#') ? hash : pathname).startsWith(base);

/** Parameters that links keep between views: session, call, and the transaction or following. */
const KEPT = ['session', 'tx', 'live', 'step'] as const;

const isView = (name: string): name is ViewName => Object.hasOwn(VIEWS, name);

/** Parses an address. An unknown view becomes the list of sessions. */
export function parseAddress({ pathname, search, hash }: Placed): Address {
  const whole = base.startsWith('#') ? hash : `${pathname}${search}`;
  const [name = '', query = ''] = whole.startsWith(base) ? whole.slice(base.length).split(/\?(.*)/s) : [];
  const view = isView(name) ? name : 'sessions';
  return { view, of: { ...always, ...Object.fromEntries(new URLSearchParams(query)) } };
}

/** Formats an address; leaves out empty parameters. */
export function addressText({ view, of }: Address): string {
  const given = Object.entries(of).filter(([, value]) => value !== '');
  const query = new URLSearchParams(given).toString();
  return `${base}${view === 'sessions' ? '' : view}${query === '' ? '' : `?${query}`}`;
}

/**
 * Returns the address of another view with the current session, call and transaction, unless `of`
 * overrides them.
 */
export function linkTo(
  from: Address,
  view: ViewName,
  of: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const kept =
    view === 'sessions'
      ? []
      : KEPT.flatMap((name) => (from.of[name] === undefined ? [] : [[name, from.of[name]] as const]));
  const said = Object.entries(of).map(([name, value]) => [name, value === undefined ? '' : String(value)] as const);
  return addressText({ view, of: Object.fromEntries([...kept, ...said]) });
}

/** Returns the equivalent command line; undefined if there is none. */
export function commandLine({ view, of }: Address): string | undefined {
  const { session, step, id, q } = of;
  const commands: Readonly<Record<ViewName, string | undefined>> = {
    sessions: command('sessions'),
    conversation: session && command('log', session),
    strip: session && command('report', 'list', session),
    money: undefined,
    notes: session && command('note', session),
    request: session && command('context', step === undefined ? session : `${session}@step:${step}`),
    changes:
      session &&
      command('diff', session, ...(of.from ? [`step:${of.from}..${step ? `step:${step}` : ''}`] : []), '--prefix'),
    object: id && command('log', '--object', id),
    search: undefined,
    files: session && command('restore', step === undefined ? session : `${session}@step:${step}`, '--plan'),
    compare: undefined,
    query: q && command('query', q, ...(of.tx ? ['--tx', of.tx] : [])),
  };
  return commands[view];
}
