import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ActorLink } from './actor.js';
import { isServed } from './ask.js';
import { useQuestion, useSessionStrip } from './calls.js';
import { HunksView } from './diff-view.js';
import { UndoStep } from './person.js';
import { from } from './place.js';
import { Prose } from './prose.js';
import { oneLine } from './shown-text.js';
import { makerOf, requestOf, requestWith } from './strip-layout.js';
import { CopyButton, Runs, TextView } from './text-view.js';
import type { ConversationRow, Show } from './wire.js';
import { clockTime, counted, localTime, money, pathEnd, plural, speaker } from './words.js';

/** Lines of a failed call's result that are shown before the reader asks for all. */
const FAILURE_LINES = 8;
/** Lines of a text from a harness that are shown before the reader asks for all. */
const FOLDED_LINES = 4;

/** Number of named files of a call with many files, before the reader asks for all. */
const FEW_FILES = 4;

/** A row of one kind. */
export type RowOf<K extends ConversationRow['kind']> = Extract<ConversationRow, { kind: K }>;

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
          {isWanted ? 'Reading…' : 'Show all'}
        </button>
      )}
    </>
  );
}

type CallFile = RowOf<'call'>['files'][number];

const historyOf = ({ id, version }: CallFile): string =>
  from('object', { id, ...(version === null ? {} : { b: version.number }) });

/**
 * Lists the files of a call by what the call did to them. A button shows the rest of a long list.
 */
function Files({ files }: { readonly files: readonly CallFile[] }) {
  const [isWhole, setWhole] = useState(false);
  if (files.length === 0) return null;
  const shown = isWhole || files.length <= FEW_FILES + 1 ? files : files.slice(0, FEW_FILES);
  return (
    <p class="soft call-files">
      {shown.map((file, i) => (
        <span key={file.id}>
          {file.effect !== shown[i - 1]?.effect && `${file.effect} `}
          <a href={historyOf(file)}>{oneLine(pathEnd(file.name, 60))}</a>
          {file.lines !== null && ` lines ${file.lines.from}–${file.lines.to ?? 'end'}`}
          {file.version !== null && ` (version ${file.version.number})`}
        </span>
      ))}
      {shown.length < files.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          {counted(files.length - shown.length)} more
        </button>
      )}
    </p>
  );
}

function Call({ row }: { readonly row: RowOf<'call'> }) {
  const {
    id,
    name,
    tool,
    about,
    failed,
    unanswered,
    args,
    result,
    result_chars: chars,
    is_cut: isCut,
    files,
    diff,
    notes,
    stale,
    step,
    sub_agent: subAgent,
  } = row;
  const [isOpen, setOpen] = useState(false);
  const strip = useSessionStrip();
  const asked = requestOf(strip.state === 'there' ? strip.value : undefined, step);
  // A name begins with the tool's name, which has another form there: `task` for `Task`.
  const told = name.includes(' ') ? name.slice(name.indexOf(' ') + 1) : '';
  // The name of a call that read one file already has the path and the lines.
  const [read] = files.length === 1 && files[0]?.effect === 'read' && told !== '' ? files : [];
  const detail = isOpen && (
    <div class="call-detail">
      {args !== '' && args !== '{}' && diff === null && (
        <TextView text={args} label={`Arguments of ${name}`} title="Arguments" file={`${tool}-arguments.txt`} />
      )}
      <Whole id={id} name={name} result={result} isCut={isCut} />
    </div>
  );
  return (
    <div class={`entry call ${failed && !unanswered ? 'failed' : ''}`}>
      <div class="call-line">
        <button type="button" class="quiet call-name" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <span class="caret" aria-hidden="true">
            {isOpen ? '▾' : '▸'}
          </span>
          <strong>{oneLine(tool)}</strong> <code>{oneLine(told, 200)}</code>
          {about !== null && <span class="soft"> {oneLine(about, 160)}</span>}
        </button>
        {unanswered ? (
          <span class="chip warn" title="It was interrupted, or the recording ends before its result">
            result not recorded
          </span>
        ) : (
          failed && <span class="chip bad">✗ failed</span>
        )}
        {stale && (
          <a class="chip warn" href={from('files')}>
            acted on a stale copy
          </a>
        )}
        <span class="soft nowrap">{plural(chars, 'character')}</span>
        <span class="call-links">
          {subAgent !== null && isServed() && (
            <a href={from('conversation', { session: subAgent, tx: undefined, step: undefined })}>its sub-agent</a>
          )}
          {read !== undefined && (
            <a href={historyOf(read)} title={`Versions of ${oneLine(read.name, 300)}`}>
              the file
            </a>
          )}
          <a href={from('request', { step: asked })}>what it saw</a>
          <a href={from('changes', { step: asked })}>what changed</a>
        </span>
      </div>
      {notes.map((note) => (
        <p class="warn" key={note}>
          {oneLine(note, 300)}
        </p>
      ))}
      {files.map(
        ({ id: file, name: path, sight }) =>
          sight !== null &&
          (isOpen || sight.is_doubtful) && (
            <p class={sight.is_doubtful ? 'warn' : 'soft'} key={file}>
              {files.length > 1 && `${oneLine(pathEnd(path, 60))}: `}
              {sight.sentence}
            </p>
          ),
      )}
      {failed && !isOpen && result !== '' && (
        <pre class="failure">
          <Runs text={result.split('\n').slice(0, FAILURE_LINES).join('\n').slice(0, 1_000)} />
        </pre>
      )}
      {failed && detail}
      {diff !== null && diff.length > 0 && (
        <HunksView hunks={diff} label={`Change by ${name}`} title={oneLine(told || name)} />
      )}
      {!failed && detail}
      {read === undefined && <Files files={files} />}
    </div>
  );
}

function Message({ row }: { readonly row: RowOf<'message'> }) {
  const { role, text, usage, is_uncounted: isUncounted, cost, call, step, inherited } = row;
  const strip = useSessionStrip();
  const there = strip.state === 'there' ? strip.value : undefined;
  const number = there === undefined ? call : makerOf(there, step);
  return (
    <div class={`entry message ${role === 'parent' ? 'user' : role}`}>
      <div class="message-head">
        <strong>{oneLine(speaker(role))}</strong>
        {inherited && <span class="soft">in the parent session</span>}
        <span class="soft">
          {call !== null && number !== null && (
            <a href={from('request', { step: requestOf(there, step) })}>call {counted(number)}</a>
          )}
          {usage?.output !== undefined &&
            (isUncounted ? ' output not counted' : ` ${plural(usage.output, 'token')} out`)}
          {cost !== null &&
            (isUncounted && usage?.cost === undefined
              ? `, ${money(cost, 'USD')} without it`
              : ` for ${money(cost, 'USD')}`)}
        </span>
        <span class="spread" />
        <CopyButton text={() => text} />
      </div>
      <Prose text={text} lines={/^(?:system|harness)$/.test(role) ? FOLDED_LINES : undefined} />
    </div>
  );
}

/** Links to the first request without the dropped entries. */
function Dropped({ step }: { readonly step: number }) {
  const strip = useSessionStrip();
  const there = strip.state === 'there' ? strip.value : undefined;
  return <a href={from('changes', { step: requestWith(there, step), kind: 'gone' })}>what it dropped</a>;
}

function Compacted({ row }: { readonly row: RowOf<'event'> }) {
  const { text, summary, dropped, step } = row;
  return (
    <div>
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
    </div>
  );
}

/** Shows a row of a conversation. */
export function shownRow(row: ConversationRow): ComponentChildren {
  switch (row.kind) {
    case 'turn':
      return (
        <h2 class="turn-head">
          Turn {row.turn}{' '}
          <small>
            {localTime(row.at)}
            {row.inherited && ', in the parent session'}
          </small>
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
