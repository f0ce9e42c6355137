import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { commandLine, VIEWS, type ViewName } from './address.js';
import { clearAnswers, offeredViews } from './ask.js';
import { from, goTo, place } from './place.js';
import { oneLine } from './shown-text.js';
import { setTheme } from './theme.js';
import type { Strip } from './wire.js';
import { pathEnd } from './words.js';

interface Verb {
  readonly name: string;
  readonly hint: string;
  readonly run: () => void;
}

/** The hint beside the name of each view. */
const HINTS: Readonly<Record<ViewName, string>> = {
  sessions: 'all sessions, the latest first',
  conversation: 'prompts, prose and tool calls',
  strip: 'what was in the context, call by call',
  request: 'what the model saw at a call, part by part',
  changes: 'what changed since the previous call, and why',
  money: 'what the session cost, and why',
  files: 'authors of changes, stale copies, and restoring files',
  object: 'versions of one file',
  search: 'every message and every version',
  compare: 'two sessions side by side',
  notes: "reviewers' notes; downloads of the session",
  query: 'Datalog at this transaction',
};

/** Reloads the current view at the newest transaction. */
function askNewest(): void {
  clearAnswers();
  goTo(from(place.value.view, { ...place.value.of, tx: undefined }));
}

function verbs(): readonly Verb[] {
  const command = commandLine(place.value);
  const views = offeredViews()
    .filter((view) => view !== 'object')
    .map((view) => ({ name: VIEWS[view], hint: HINTS[view], run: () => goTo(from(view)) }));
  return [
    ...views,
    {
      name: 'Removed from the context',
      hint: 'objects that were removed or collapsed at this call',
      run: () => goTo(from('changes', { kind: 'gone' })),
    },
    ...(command === undefined
      ? []
      : [
          {
            name: 'Copy the command',
            hint: command,
            run: () => void navigator.clipboard.writeText(command).catch(() => undefined),
          },
        ]),
    {
      name: 'Newest data',
      hint: 'reload at the newest transaction',
      run: askNewest,
    },
    { name: 'Light', hint: 'colours', run: () => setTheme('light') },
    { name: 'Dark', hint: 'colours', run: () => setTheme('dark') },
    { name: 'System', hint: 'colours', run: () => setTheme('system') },
  ];
}

const MOST_NAMED = 6;

/**
 * Returns the places that a typed text can mean: a call by its number, files and calls by name, and
 * a search.
 */
function placesFor(wanted: string, strip: Strip | undefined): readonly Verb[] {
  const text = wanted.trim();
  if (text === '') return [];
  const call = strip?.calls[Number(text) - 1];
  const named = (strip?.bands ?? []).filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  return [
    ...(call === undefined
      ? []
      : [
          {
            name: `Call ${text}`,
            hint: `what the model saw then, in turn ${call.turn}`,
            run: () => goTo(from('request', { step: call.step })),
          },
        ]),
    ...named.slice(0, MOST_NAMED).map(({ id, type, name, changes }) => ({
      name: oneLine(type === 'file' ? pathEnd(name) : name, 60),
      hint: type === 'file' ? 'versions of this file' : 'in the conversation',
      run: () => goTo(type === 'file' ? from('object', { id }) : from('conversation', { step: changes[0]?.step })),
    })),
    {
      name: `Search for “${oneLine(text, 60)}”`,
      hint: strip === undefined ? 'in all sessions' : 'in this session',
      run: () => goTo(from('search', { q: text })),
    },
  ];
}

interface PaletteProps {
  readonly strip: Strip | undefined;
  readonly onClose: () => void;
}

/** The command palette, opened with Cmd-K. */
export function Palette({ strip, onClose }: PaletteProps) {
  const [wanted, setWanted] = useState('');
  const [chosen, setChosen] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const all = useMemo(verbs, []);
  const known = all.filter(({ name, hint }) => `${name} ${hint}`.toLowerCase().includes(wanted.trim().toLowerCase()));
  const found = [...known, ...placesFor(wanted, strip)];
  const run = (verb: Verb | undefined): void => {
    onClose();
    verb?.run();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setChosen(Math.min(found.length - 1, chosen + 1));
    else if (event.key === 'ArrowUp') setChosen(Math.max(0, chosen - 1));
    else if (event.key === 'Enter') run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog class="palette" ref={dialog} aria-label="Views and actions" onClose={onClose}>
      <input
        aria-label="View or action"
        placeholder="View, call, file, or text"
        value={wanted}
        onInput={(event) => {
          setWanted(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKey}
      />
      <ul>
        {found.map((verb, i) => (
          <li key={`${verb.name} ${i}`}>
            <button type="button" class={i === chosen ? 'chosen' : ''} onClick={() => run(verb)}>
              <strong>{verb.name}</strong> <span>{verb.hint}</span>
            </button>
          </li>
        ))}
      </ul>
    </dialog>
  );
}
