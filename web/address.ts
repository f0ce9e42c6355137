/** A view of the page. */
export type ViewName =
  | 'sessions'
  | 'strip'
  | 'turns'
  | 'request'
  | 'changes'
  | 'object'
  | 'search'
  | 'files'
  | 'compare'
  | 'query';

/** What every view is called, in the order of the page's navigation. */
export const VIEWS: Readonly<Record<ViewName, string>> = {
  sessions: 'Sessions',
  strip: 'Strip',
  turns: 'Turns',
  request: 'Request',
  changes: 'Changes',
  object: 'Object',
  search: 'Search',
  files: 'Files',
  compare: 'Compare',
  query: 'Query',
};

/** Where a reader is: a view and what it shows. Every view has an address of its own, with the transaction in it that it was read at. */
export interface Address {
  readonly view: ViewName;
  readonly of: Readonly<Record<string, string>>;
}

/** What the addresses of the page begin with: its place on a server, or, in a file, what stands behind the file's own address. */
let base = '/review/';
/** Parameters that every address has, said or not. */
let always: Address['of'] = {};

/** Where a browser is. */
interface Placed {
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
}

/** Says where the page lies: `#/` in a file. */
export function beginAt(where: string, fixed: Address['of'] = {}): void {
  [base, always] = [where, fixed];
}

/** Whether an address of the browser is one of the page's own. */
export const isOwn = ({ pathname, hash }: Pick<Placed, 'pathname' | 'hash'>): boolean =>
  (base.startsWith('#') ? hash : pathname).startsWith(base);

/** Parameters that one view hands on to the next: whose session, at which call, known after which transaction, or followed. */
const KEPT = ['session', 'tx', 'live', 'step'] as const;

const isView = (name: string): name is ViewName => Object.hasOwn(VIEWS, name);

/** Reads an address; one that names no view is the list of sessions. */
export function parseAddress({ pathname, search, hash }: Placed): Address {
  const whole = base.startsWith('#') ? hash : `${pathname}${search}`;
  const [name = '', query = ''] = whole.startsWith(base) ? whole.slice(base.length).split(/\?(.*)/s) : [];
  const view = isView(name) ? name : 'sessions';
  return { view, of: { ...always, ...Object.fromEntries(new URLSearchParams(query)) } };
}

/** Writes an address; parameters that are empty are left out. */
export function addressText({ view, of }: Address): string {
  const given = Object.entries(of).filter(([, value]) => value !== '');
  const query = new URLSearchParams(given).toString();
  return `${base}${view === 'sessions' ? '' : view}${query === '' ? '' : `?${query}`}`;
}

/** The address of another view from where a reader is: the same session, call and transaction, unless `of` says otherwise. */
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

/** What answers the same on the command line; undefined where nothing does. */
export function commandLine({ view, of }: Address): string | undefined {
  const quoted = (text: string): string =>
    /^[A-Za-z0-9_@:./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
  const { session, step, id, q } = of;
  const commands: Readonly<Record<ViewName, string | undefined>> = {
    sessions: 'palimpsest sessions',
    strip: session && `palimpsest report list ${quoted(session)}`,
    turns: session && `palimpsest log ${quoted(session)}`,
    request: session && `palimpsest context ${quoted(step === undefined ? session : `${session}@step:${step}`)}`,
    changes:
      session &&
      `palimpsest diff ${quoted(session)} ${of.from ? `step:${of.from}..${step ? `step:${step}` : ''} ` : ''}--prefix`,
    object: id && `palimpsest log --object ${quoted(id)}`,
    search: undefined,
    files: session && `palimpsest restore ${quoted(step === undefined ? session : `${session}@step:${step}`)} --plan`,
    compare: undefined,
    query: q && `palimpsest query ${quoted(q)}${of.tx ? ` --tx ${of.tx}` : ''}`,
  };
  return commands[view];
}
