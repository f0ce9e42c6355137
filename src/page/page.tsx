import { useEffect, useRef, useState } from 'preact/hooks';
import { type Refused, trouble } from './access.js';
import { VIEWS, type ViewName } from './address.js';
import { Waiting } from './answer-box.js';
import { askFresh, isServed, offeredViews, useAnswer } from './ask.js';
import { callNumber, choose, chosenStep, move, stepFor, toggleFollowing, useSessionStrip } from './calls.js';
import { Door } from './door.js';
import { follow, followed } from './follow.js';
import { type KeyBinding, listenToKeys } from './keys.js';
import type { Palette } from './palette.js';
import { from, goTo, place } from './place.js';
import { oneLine } from './shown-text.js';
import { ChangesView } from './views/changes.js';
import { ConversationView } from './views/conversation.js';
import { MoneyView } from './views/money.js';
import { RequestPage } from './views/request.js';
import { SearchView } from './views/search.js';
import { SessionsView } from './views/sessions.js';
import { StripView } from './views/strip.js';
import type { Sessions, Strip } from './wire.js';
import { counted } from './words.js';

/** The components of all views. */
export type Shown = Readonly<Record<ViewName, () => preact.JSX.Element>>;

/**
 * Reloads the page once the server answers, because a browser may keep a failed import. If the
 * server does not answer, the head of the page says what to do.
 */
const reloadOnceServed = (): void =>
  void askFresh('/v1/sessions').then(
    () => location.reload(),
    () => undefined,
  );

/** Returns a view whose code is loaded when it is first shown. */
function later(load: () => Promise<() => preact.JSX.Element>): () => preact.JSX.Element {
  let Loaded: (() => preact.JSX.Element) | undefined;
  return function Later() {
    const [state, setState] = useState<'loading' | 'loaded' | 'failed'>('loading');
    useEffect(() => {
      load().then(
        (view) => {
          Loaded = view;
          setState('loaded');
        },
        () => setState('failed'),
      );
    }, []);
    if (Loaded !== undefined) return <Loaded />;
    return state !== 'failed' ? (
      <Waiting />
    ) : (
      <div class="refused" role="alert">
        <p>
          The code of this view could not be fetched. Check that <code>palimpsest review</code> runs, and try again.
        </p>
        <button type="button" onClick={reloadOnceServed}>
          Try again
        </button>
      </div>
    );
  };
}

const SHOWN: Shown = {
  sessions: SessionsView,
  conversation: ConversationView,
  strip: StripView,
  request: RequestPage,
  changes: ChangesView,
  money: MoneyView,
  files: later(async () => (await import('./views/files.js')).FilesView),
  object: later(async () => (await import('./views/object.js')).ObjectView),
  search: SearchView,
  compare: later(async () => (await import('./views/compare.js')).CompareView),
  notes: later(async () => (await import('./views/notes.js')).NotesView),
  query: later(async () => (await import('./views/query.js')).QueryView),
};

/** The views in the main row of a session, each with the other views that belong to its tab. */
const TABS: readonly (readonly [ViewName, readonly ViewName[]])[] = [
  ['conversation', []],
  ['strip', []],
  ['request', ['changes']],
  ['money', []],
  ['files', ['object']],
  ['compare', []],
  ['notes', []],
];

function focusSearch(): void {
  const box = document.querySelector<HTMLInputElement>('input[type="search"]');
  box?.focus();
  box?.select();
}

function focusCall(): void {
  const box = document.querySelector<HTMLInputElement>('#call');
  box?.focus();
  box?.select();
}

/**
 * Returns the key bindings at the current address. Keys that move between calls work in every view
 * of a session.
 */
function bindings(strip: Strip | undefined, onHelp: () => void): readonly KeyBinding[] {
  const calls: readonly KeyBinding[] =
    strip === undefined
      ? []
      : [
          { key: 'j', does: 'next call', run: () => move(strip, 'next') },
          { key: 'k', does: 'previous call', run: () => move(strip, 'previous') },
          { key: ']', does: 'next turn', run: () => move(strip, 'next-turn') },
          { key: '[', does: 'previous turn', run: () => move(strip, 'previous-turn') },
          { key: 'g', does: 'go to a call by its number', run: focusCall },
          {
            key: 'v',
            does: 'the conversation',
            run: () => goTo(from('conversation', { step: stepFor('conversation', strip) })),
          },
          {
            key: 's',
            does: 'the context, call by call',
            run: () => goTo(from('strip', { step: stepFor('strip', strip) })),
          },
          {
            key: 'r',
            does: 'what the model saw at the call',
            run: () => goTo(from('request', { step: stepFor('request', strip) })),
          },
          {
            key: 'c',
            does: 'what changed since the previous call',
            run: () => goTo(from('changes', { step: stepFor('changes', strip) })),
          },
          ...(isServed() ? [{ key: 'f', does: 'follow the session, or stop following', run: toggleFollowing }] : []),
        ];
  return [...calls, { key: '/', does: 'search', run: focusSearch }, { key: '?', does: 'these keys', run: onHelp }];
}

function Keys({ keys, onClose }: { readonly keys: readonly KeyBinding[]; readonly onClose: () => void }) {
  return (
    <aside class="keys card" aria-label="Keys">
      <dl class="facts">
        {[...keys, { key: 'Ctrl K', does: 'every view and action' }, { key: 'Esc', does: 'close' }].map(
          ({ key, does }) => (
            <>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{does}</dd>
            </>
          ),
        )}
      </dl>
      <button type="button" onClick={onClose}>
        Close
      </button>
    </aside>
  );
}

/** Shows whether the page follows the session, or why it cannot at the moment. */
function Follow() {
  const { live, session } = place.value.of;
  const now = followed.value?.session === session ? followed.value : undefined;
  const isLive = now?.isConnected === true && trouble.value === undefined;
  return (
    <>
      {live !== undefined && (
        <span class={`chip ${isLive ? 'good' : 'warn'}`} role="status" aria-label="Following">
          {isLive ? '● following' : now === undefined ? 'connecting…' : '○ connection lost, trying again'}
        </span>
      )}
      <button type="button" aria-pressed={live !== undefined} onClick={toggleFollowing}>
        Follow
      </button>
    </>
  );
}

/** Shows why the page cannot read from the server at the moment, and what to do. */
function Trouble() {
  const now = trouble.value;
  if (now === undefined) return null;
  return (
    <div class={`trouble ${now.kind}`} role="alert">
      {now.kind === 'starting' ? 'The database is starting. This page retries every second. ' : ''}
      {now.text}
    </div>
  );
}

/** Shows the number of the chosen call, with links to its neighbours. */
function CallNumber({ strip }: { readonly strip: Strip }) {
  const step = chosenStep(strip);
  const number = step === undefined ? 0 : callNumber(strip, step);
  const { length } = strip.calls;
  if (length === 0) return null;
  return (
    <form
      class="call-number"
      aria-label="Go to a call"
      onSubmit={(event) => {
        event.preventDefault();
        const wanted = Number(new FormData(event.currentTarget).get('call'));
        const call = strip.calls[Math.min(length, Math.max(1, wanted)) - 1];
        if (call !== undefined) choose(call.step, {});
      }}
    >
      <button type="button" class="quiet" aria-label="Previous call" onClick={() => move(strip, 'previous')}>
        ‹
      </button>
      <label for="call">Call</label>
      <input
        id="call"
        name="call"
        aria-label="Call"
        key={number}
        inputMode="numeric"
        autocomplete="off"
        size={Math.max(2, String(length).length)}
        defaultValue={String(number)}
      />
      <span class="soft">of {counted(length)}</span>
      <button type="button" class="quiet" aria-label="Next call" onClick={() => move(strip, 'next')}>
        ›
      </button>
    </form>
  );
}

interface HeaderProps {
  readonly named: Readonly<Record<ViewName, string>>;
  readonly title: string | undefined;
  readonly strip: Strip | undefined;
  readonly onPalette: () => void;
}

function Header({ named, title, strip, onPalette }: HeaderProps) {
  const { view, of } = place.value;
  const { session, q } = of;
  const offered = offeredViews();
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    // A narrow screen shows a part of the tabs.
    const current = tabs.current?.querySelector<HTMLElement>('[aria-current]');
    if (tabs.current !== null && current != null) tabs.current.scrollLeft = current.offsetLeft - 60;
  }, [view, session]);
  return (
    <header class="top">
      <div class="top-row">
        <a class="brand" href={from('sessions', {})} title={named.sessions}>
          <span aria-hidden="true">▤</span> <span class="brand-name">Palimpsest</span>
        </a>
        {session !== undefined && (
          <a class="session-title" href={from('conversation')} title={oneLine(session)}>
            {oneLine(title ?? session)}
          </a>
        )}
        <span class="spread" />
        {view !== 'sessions' && (
          <form
            class="search-box"
            onSubmit={(event) => {
              event.preventDefault();
              goTo(from('search', { q: String(new FormData(event.currentTarget).get('q') ?? '') }));
            }}
          >
            <input
              type="search"
              name="q"
              key={view === 'search' ? q : ''}
              defaultValue={view === 'search' ? (q ?? '') : ''}
              maxLength={1_000}
              placeholder={session === undefined ? 'Search all sessions' : 'Search this session'}
              aria-label="Search"
            />
          </form>
        )}
        {session !== undefined && isServed() && <Follow />}
        <button type="button" class="quiet palette-open" title="Views and actions" onClick={onPalette}>
          <span class="palette-name">Actions</span> <kbd>Ctrl K</kbd>
        </button>
      </div>
      {session !== undefined && (
        <div class="top-row tabs">
          <nav aria-label="Views" ref={tabs}>
            {TABS.filter(([name]) => offered.includes(name)).map(([name, others]) => (
              <a
                key={name}
                href={from(name, { step: stepFor(name, strip) })}
                aria-current={name === view || others.includes(view) ? 'page' : undefined}
              >
                {named[name]}
              </a>
            ))}
            <a class="only-narrow" href={from('search')} aria-current={view === 'search' ? 'page' : undefined}>
              {named.search}
            </a>
          </nav>
          <span class="spread" />
          {strip !== undefined && <CallNumber strip={strip} />}
        </div>
      )}
      <Trouble />
    </header>
  );
}

/** Properties from the page's entry point. */
interface PageProps {
  readonly refused: Refused | undefined;
  /** Components that replace those of some views. */
  readonly views?: Partial<Shown>;
  readonly names?: Partial<Readonly<Record<ViewName, string>>>;
  /** The title of the session, for a page without a server. */
  readonly sessionTitle?: string;
}

/** The whole page: its views, keys and login. */
export function Page({ refused, views = {}, names = {}, sessionTitle }: PageProps) {
  const named = { ...VIEWS, ...names };
  const [palette, setPalette] = useState<{ readonly Shown: typeof Palette }>();
  const [help, setHelp] = useState(false);
  const { view, of } = place.value;
  const { live, session } = of;
  const isIn = refused === undefined;
  const answer = useSessionStrip({ isAsked: isIn });
  const strip = answer.state === 'there' ? answer.value : undefined;
  const sessions = useAnswer<Sessions>(isIn && isServed() ? '/v1/sessions' : undefined);
  const row = sessions.state === 'there' ? sessions.value.sessions.find(({ id }) => id === session) : undefined;
  useEffect(() => {
    return live !== undefined && session !== undefined && isIn && isServed() ? follow(session) : undefined;
  }, [live, session]);
  const openPalette = (): void => void import('./palette.js').then(({ Palette: Shown }) => setPalette({ Shown }));
  const keys = bindings(strip, () => setHelp(!help));
  useEffect(() =>
    listenToKeys(() => keys, {
      onPalette: openPalette,
      onEscape: () => setHelp(false),
    }),
  );
  const title = row?.title ?? sessionTitle ?? session;
  useEffect(() => {
    document.title = [named[view], ...(title === undefined ? [] : [oneLine(title, 60)]), 'Palimpsest'].join(' · ');
  }, [view, title]);
  if (refused !== undefined && refused.status !== 0) return <Door why={refused.message} />;
  if (trouble.value?.kind === 'ended') return <Door why={trouble.value.text} />;
  const Shown = views[view] ?? SHOWN[view];
  return (
    <>
      <Header named={named} title={title} strip={strip} onPalette={openPalette} />
      <main class={`view-${view}`}>
        <Shown />
      </main>
      {help && <Keys keys={keys} onClose={() => setHelp(false)} />}
      {palette !== undefined && <palette.Shown strip={strip} onClose={() => setPalette(undefined)} />}
    </>
  );
}
