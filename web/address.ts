/** A view of the page. */
export type ViewName = 'sessions' | 'strip' | 'turns' | 'request' | 'changes' | 'object' | 'search' | 'query';

/** What every view is called, in the order of the page's navigation. */
export const VIEWS: Readonly<Record<ViewName, string>> = {
  sessions: 'Sessions',
  strip: 'Strip',
  turns: 'Turns',
  request: 'Request',
  changes: 'Changes',
  object: 'Object',
  search: 'Search',
  query: 'Query',
};

/** Where a reader is: a view and what it shows. Every view has an address of its own, with the transaction in it that it was read at. */
export interface Address {
  readonly view: ViewName;
  readonly of: Readonly<Record<string, string>>;
}

/** Where the page lies on its server. */
export const BASE = '/review/';

/** Parameters that one view hands on to the next: whose session, at which call, known after which transaction. */
const KEPT = ['session', 'tx', 'step'] as const;

const isView = (name: string): name is ViewName => Object.hasOwn(VIEWS, name);

/** Reads an address; one that names no view is the list of sessions. */
export function parseAddress({ pathname, search }: { readonly pathname: string; readonly search: string }): Address {
  const name = pathname.startsWith(BASE) ? pathname.slice(BASE.length) : '';
  const view = isView(name) ? name : 'sessions';
  return { view, of: Object.fromEntries(new URLSearchParams(search)) };
}

/** Writes an address; parameters that are empty are left out. */
export function addressText({ view, of }: Address): string {
  const given = Object.entries(of).filter(([, value]) => value !== '');
  const query = new URLSearchParams(given).toString();
  return `${BASE}${view === 'sessions' ? '' : view}${query === '' ? '' : `?${query}`}`;
}

/** The address of another view from where a reader is: the same session, call and transaction, unless `of` says otherwise. */
export function linkTo(from: Address, view: ViewName, of: Readonly<Record<string, string | number | undefined>> = {}): string {
  const kept = view === 'sessions' ? [] : KEPT.flatMap((name) => (from.of[name] === undefined ? [] : [[name, from.of[name]] as const]));
  const said = Object.entries(of).map(([name, value]) => [name, value === undefined ? '' : String(value)] as const);
  return addressText({ view, of: Object.fromEntries([...kept, ...said]) });
}

/** What answers the same on the command line; undefined where nothing does. */
export function commandLine({ view, of }: Address): string | undefined {
  const quoted = (text: string): string => (/^[A-Za-z0-9_@:./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
  const { session, step, id, q } = of;
  const commands: Readonly<Record<ViewName, string | undefined>> = {
    sessions: 'palimpsest sessions',
    strip: session && `palimpsest report list ${quoted(session)}`,
    turns: session && `palimpsest log ${quoted(session)}`,
    request: session && `palimpsest context ${quoted(step === undefined ? session : `${session}@step:${step}`)}`,
    changes: session && `palimpsest diff ${quoted(session)} ${of.from ? `step:${of.from}..${step ? `step:${step}` : ''} ` : ''}--prefix`,
    object: id && `palimpsest log --object ${quoted(id)}`,
    search: undefined,
    query: q && `palimpsest query ${quoted(q)}${of.tx ? ` --tx ${of.tx}` : ''}`,
  };
  return commands[view];
}
