import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ownMember } from '../values/own-member.js';
import { ActorLink } from './actor.js';
import { useQuestion, useSessionStrip } from './calls.js';
import { HunksView } from './diff-view.js';
import { UndoStep } from './person.js';
import { from } from './place.js';
import { Prose } from './prose.js';
import { oneLine } from './shown-text.js';
import { makerOf, requestOf, requestWith } from './strip-layout.js';
import { CopyButton, Runs, TextView } from './text-view.js';
import type { ConversationRow, Show } from './wire.js';
import { clockTime, counted, localTime, money, pathEnd, plural } from './words.js';

/** Lines of a failed call's result that are shown at once. */
const FAILURE_LINES = 8;
/** Lines of a text that no person and no model wrote, until a reader asks for all. */
const FOLDED_LINES = 4;

/** A row of one kind. */
export type RowOf<K extends ConversationRow['kind']> = Extract<ConversationRow, { kind: K }>;

const ROLES: Readonly<Record<string, string>> = {
  user: 'User',
  assistant: 'Model',
  system: 'System prompt',
  harness: 'Harness',
};

function Whole({
  id,
  name,
  result,
  isCut,
}: {
  readonly id: string;
  readonly name: string;
  readonly result: string;
  readonly isCut: boolean;
}) {
  const [isWanted, setWanted] = useState(false);
  const answer = useQuestion<Show>(isWanted ? '/v1/show' : undefined, { object: id });
  const text = answer.state === 'there' ? (answer.value.text ?? result) : result;
  if (text === '') return <p class="soft">No result is recorded.</p>;
  return (
    <>
      <TextView
        text={text}
        label={`Result of ${name}`}
        title={answer.state === 'there' || !isCut ? 'Result' : 'Result, its beginning and end'}
        file={`${name}.txt`}
      />
      {isCut && answer.state !== 'there' && (
        <button type="button" onClick={() => setWanted(true)}>
          {isWanted ? 'Reading…' : 'Show all of it'}
        </button>
      )}
    </>
  );
}

function Files({ files }: { readonly files: RowOf<'call'>['files'] }) {
  if (files.length === 0) return null;
  return (
    <p class="soft call-files">
      {files.slice(0, 12).map(({ id, name, effect, lines, version }) => (
        <span key={id}>
          {effect}{' '}
          <a href={from('object', { id, ...(version === null ? {} : { b: version.number }) })}>
            {oneLine(pathEnd(name, 60))}
          </a>
          {lines !== null && ` lines ${lines.from}–${lines.to ?? 'end'}`}
          {version !== null && ` (version ${version.number})`}
        </span>
      ))}
      {files.length > 12 && <span>and {counted(files.length - 12)} more</span>}
    </p>
  );
}

function Call({ row }: { readonly row: RowOf<'call'> }) {
  const {
    id,
    name,
    tool,
    failed,
    args,
    result,
    result_chars: chars,
    is_cut: isCut,
    files,
    diff,
    notes,
    stale,
    step,
  } = row;
  const [isOpen, setOpen] = useState(false);
  const strip = useSessionStrip();
  const asked = requestOf(strip.state === 'there' ? strip.value : undefined, step);
  const told = name.startsWith(`${tool} `) ? name.slice(tool.length + 1) : '';
  return (
    <div class={`entry call ${failed ? 'failed' : ''}`}>
      <div class="call-line">
        <button type="button" class="quiet call-name" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <span class="caret" aria-hidden="true">
            {isOpen ? '▾' : '▸'}
          </span>
          <strong>{oneLine(tool)}</strong> <code>{oneLine(told, 200)}</code>
        </button>
        {failed && <span class="chip bad">✗ failed</span>}
        {stale && (
          <a class="chip warn" href={from('files')}>
            acted on a stale copy
          </a>
        )}
        <span class="soft nowrap">{plural(chars, 'character')}</span>
        <span class="call-links">
          <a href={from('request', { step: asked })}>what it saw</a>
          <a href={from('changes', { step: asked })}>what changed</a>
        </span>
      </div>
      {notes.map((note) => (
        <p class="warn" key={note}>
          {oneLine(note, 300)}
        </p>
      ))}
      {failed && !isOpen && result !== '' && (
        <pre class="failure">
          <Runs text={result.split('\n').slice(0, FAILURE_LINES).join('\n').slice(0, 1_000)} />
        </pre>
      )}
      {diff !== null && diff.length > 0 && (
        <HunksView hunks={diff} label={`Change by ${name}`} title={oneLine(told || name)} />
      )}
      {isOpen && (
        <div class="call-detail">
          {args !== '' && args !== '{}' && diff === null && (
            <TextView text={args} label={`Arguments of ${name}`} title="Arguments" file={`${tool}-arguments.txt`} />
          )}
          <Whole id={id} name={name} result={result} isCut={isCut} />
        </div>
      )}
      <Files files={files} />
    </div>
  );
}

function Message({ row }: { readonly row: RowOf<'message'> }) {
  const { role, text, usage, cost, call, step } = row;
  const strip = useSessionStrip();
  const there = strip.state === 'there' ? strip.value : undefined;
  const number = there === undefined ? call : makerOf(there, step);
  return (
    <div class={`entry message ${role}`}>
      <div class="message-head">
        <strong>{ownMember(ROLES, role) ?? oneLine(role)}</strong>
        <span class="soft">
          {call !== null && number !== null && (
            <a href={from('request', { step: requestOf(there, step) })}>call {counted(number)}</a>
          )}
          {usage?.output !== undefined && ` ${plural(usage.output, 'token')} out`}
          {cost !== null && ` for ${money(cost, 'USD')}`}
        </span>
        <span class="spread" />
        <CopyButton text={() => text} />
      </div>
      <Prose text={text} lines={role === 'user' || role === 'assistant' ? undefined : FOLDED_LINES} />
    </div>
  );
}

/** Links to the request that was the first without the dropped entries. */
function Dropped({ step }: { readonly step: number }) {
  const strip = useSessionStrip();
  const there = strip.state === 'there' ? strip.value : undefined;
  return <a href={from('changes', { step: requestWith(there, step), kind: 'gone' })}>what it dropped</a>;
}

function Compacted({ row }: { readonly row: RowOf<'event'> }) {
  const { text, summary, dropped, step } = row;
  return (
    <>
      <div class="across">
        <span>
          {oneLine(text, 300)}
          {dropped !== null && ` · ${plural(dropped, 'entry', 'entries')} dropped`} · <Dropped step={step} />
        </span>
      </div>
      {summary !== null && (
        <details class="entry">
          <summary>The summary that took its place</summary>
          <TextView text={summary} label="Summary" />
        </details>
      )}
    </>
  );
}

/** Shows a row of a conversation. */
export function shownRow(row: ConversationRow): ComponentChildren {
  switch (row.kind) {
    case 'turn':
      return (
        <h2 class="turn-head">
          Turn {row.turn} <small>{localTime(row.at)}</small>
        </h2>
      );
    case 'message':
      return <Message row={row} />;
    case 'call':
      return <Call row={row} />;
    case 'epoch':
      return (
        <div class="across">
          <span>
            {oneLine(row.text, 300)} · <Dropped step={row.step} />
          </span>
        </div>
      );
    case 'event':
      return <Compacted row={row} />;
    case 'person':
      return (
        <div class="entry other">
          <span class="chip warn">person</span> {oneLine(row.text, 300)} <UndoStep step={row.step} />
        </div>
      );
    case 'change':
      return (
        <div class="entry other">
          <span class="chip warn">changed</span>{' '}
          <a href={from('object', { id: row.object, b: row.version.number })}>{oneLine(pathEnd(row.name, 60))}</a>{' '}
          <span class="soft">version {row.version.number}, by</span> <ActorLink by={row.by} />{' '}
          <span class="soft">{clockTime(row.version.valid_time)}</span>
        </div>
      );
  }
}
