import { useEffect, useState } from 'preact/hooks';
import { enterWith, type Refused } from './access.js';
import { VIEWS, type ViewName } from './address.js';
import { isServed, offeredViews, useAnswer } from './ask.js';
import { move, toggleFollowing, useSessionStrip } from './calls.js';
import { follow, followed } from './follow.js';
import { type KeyBinding, listenToKeys } from './keys.js';
import { Palette } from './palette.js';
import { from, goTo, place } from './place.js';
import { oneLine } from './shown-text.js';
import { ChangesView } from './views/changes.js';
import { CompareView } from './views/compare.js';
import { FilesView } from './views/files.js';
import { ObjectView } from './views/object.js';
import { QueryView } from './views/query.js';
import { RequestPage } from './views/request.js';
import { SearchView } from './views/search.js';
import { SessionsView } from './views/sessions.js';
import { StripView } from './views/strip.js';
import { TurnsView } from './views/turns.js';
import type { Strip } from './wire.js';

/** The component of each view. */
export type Shown = Readonly<Record<ViewName, () => preact.JSX.Element>>;

const SHOWN: Shown = {
  sessions: SessionsView,
  strip: StripView,
  turns: TurnsView,
  request: RequestPage,
  changes: ChangesView,
  object: ObjectView,
  search: SearchView,
  files: FilesView,
  compare: CompareView,
  query: QueryView,
};

/** Views of one session. */
const OF_SESSION: ReadonlySet<ViewName> = new Set(['strip', 'turns', 'request', 'changes', 'search', 'files']);

function focusSearch(): void {
  const box = document.querySelector<HTMLInputElement>('main input[type="search"]');
  if (box !== null) box.focus();
  else goTo(from('search'));
}

/**
 * Returns the action of each key at the present place. Keys that move between calls work in every
 * view of a session.
 */
function bindings(strip: Strip | undefined, onHelp: () => void): readonly KeyBinding[] {
  const calls: readonly KeyBinding[] =
    strip === undefined
      ? []
      : [
          { key: 'j', does: 'the next call', run: () => move(strip, 'next') },
          { key: 'k', does: 'the call before', run: () => move(strip, 'previous') },
          { key: ']', does: 'the next turn', run: () => move(strip, 'next-turn') },
          { key: '[', does: 'the turn before', run: () => move(strip, 'previous-turn') },
          { key: 's', does: 'the strip', run: () => goTo(from('strip')) },
          { key: 'r', does: 'the request of the call', run: () => goTo(from('request')) },
          { key: 'c', does: 'what changed at the call', run: () => goTo(from('changes')) },
          ...(isServed() ? [{ key: 'f', does: 'follow the session, or stay where it is', run: toggleFollowing }] : []),
        ];
  return [...calls, { key: '/', does: 'search', run: focusSearch }, { key: '?', does: 'the keys', run: onHelp }];
}

function Keys({ keys, onClose }: { readonly keys: readonly KeyBinding[]; readonly onClose: () => void }) {
  return (
    <aside class="keys" aria-label="Keys">
      <dl>
        {[...keys, { key: 'Ctrl-K', does: 'every verb' }].map(({ key, does }) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={onClose}>
        Close
      </button>
    </aside>
  );
}

/** Shown to visitors who were not admitted. */
function Door({ refused }: { readonly refused: Refused }) {
  const [told, setTold] = useState(refused.message);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const token = String(new FormData(form).get('token') ?? '');
    enterWith(token).then(
      () => location.reload(),
      (error: unknown) => setTold(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <main class="door">
      <h1>Palimpsest</h1>
      <p role="alert">{told}</p>
      <p>
        Open the address that <code>palimpsest review</code> printed: it lets one visitor in, once. Of a running{' '}
        <code>palimpsest serve</code> the token opens this page too.
      </p>
      <form onSubmit={onSubmit}>
        <label>
          Token <input name="token" type="password" autocomplete="off" required />
        </label>
        <button type="submit">Enter</button>
      </form>
    </main>
  );
}

/** Shows whether the session is followed, and up to where. */
function Follow() {
  const { live, session } = place.value.of;
  const now = followed.value?.session === session ? followed.value : undefined;
  return (
    <>
      {live !== undefined && (
        <span class={now?.isConnected === true ? 'live' : 'live lost'} role="status" aria-label="Following">
          {now === undefined
            ? 'connecting…'
            : `${now.isConnected ? 'following' : 'connection lost, trying again'}, step ${now.strip.last_step}`}
        </span>
      )}
      <button type="button" aria-pressed={live !== undefined} onClick={toggleFollowing}>
        Follow
      </button>
    </>
  );
}

function Header({ named }: { readonly named: Readonly<Record<ViewName, string>> }) {
  const { view, of } = place.value;
  const { session, tx } = of;
  const names = offeredViews().filter((name) => session !== undefined || !OF_SESSION.has(name));
  return (
    <header>
      <nav aria-label="Views">
        {names
          .filter((name) => name !== 'object' || view === 'object')
          .map((name) => (
            <a
              key={name}
              href={from(name, name === 'query' ? {} : { ...(name === 'object' ? of : {}) })}
              aria-current={name === view ? 'page' : undefined}
            >
              {named[name]}
            </a>
          ))}
      </nav>
      {session !== undefined && <span class="session">{oneLine(session)}</span>}
      {tx !== undefined && <span class="basis">as known after transaction {oneLine(tx)}</span>}
      {session !== undefined && isServed() && <Follow />}
    </header>
  );
}

/** Properties from the page's entry point. */
interface PageProps {
  readonly refused: Refused | undefined;
  /** Replacements of views, and their names. */
  readonly views?: Partial<Shown>;
  readonly names?: Partial<Readonly<Record<ViewName, string>>>;
}

/** The whole page: its views, keys and login. */
export function Page({ refused, views = {}, names = {} }: PageProps) {
  const named = { ...VIEWS, ...names };
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const { view, of } = place.value;
  const strip = useSessionStrip({ isAsked: refused === undefined });
  const { live, session } = of;
  useEffect(() => {
    const isFollowed = live !== undefined && session !== undefined && refused === undefined && isServed();
    return isFollowed ? follow(session) : undefined;
  }, [live, session]);
  const door = useAnswer<unknown>(refused === undefined && isServed() ? '/v1/sessions' : undefined);
  const keys = bindings(strip.state === 'there' ? strip.value : undefined, () => setHelp(!help));
  useEffect(() =>
    listenToKeys(
      () => keys,
      () => setPalette(true),
    ),
  );
  useEffect(() => {
    document.title = `${named[view]}${of.session === undefined ? '' : ` · ${oneLine(of.session, 60)}`} · Palimpsest`;
  }, [view, of.session]);
  if (refused !== undefined && refused.status !== 0) return <Door refused={refused} />;
  if (door.state === 'refused' && door.refused.status === 401) return <Door refused={door.refused} />;
  const Shown = views[view] ?? SHOWN[view];
  return (
    <>
      <Header named={named} />
      <main>
        <Shown />
      </main>
      {help && <Keys keys={keys} onClose={() => setHelp(false)} />}
      {palette && <Palette onClose={() => setPalette(false)} />}
    </>
  );
}
