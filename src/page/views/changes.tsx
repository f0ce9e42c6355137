import { useState } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import type { Answered } from '../ask.js';
import { askedStep, callNumber, useQuestion, useStrip } from '../calls.js';
import { CompactionCard } from '../compaction.js';
import { DiffView } from '../diff-view.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import { TextView } from '../text-view.js';
import { TranscriptNote } from '../transcript-note.js';
import { whyByCall } from '../why-by-call.js';
import type { Change, Changes, RequestView, Strip } from '../wire.js';
import { counted, localTime, pathEnd, plural, signed, speaker } from '../words.js';

const KINDS: Readonly<Record<Change['kind'], string>> = {
  collapsed: 'Collapsed to one line',
  left: 'Left',
  changed: 'Changed',
  loaded: 'Loaded in full',
  came: 'New',
  moved: 'Moved',
};
const GONE: ReadonlySet<string> = new Set(['collapsed', 'left']);

const ACTORS: Readonly<Record<Change['actor'], string>> = {
  agent: 'agent',
  person: 'person',
  window: 'window',
  watcher: 'disk',
  epoch: 'epoch',
  harness: 'harness',
  rendering: 'layout',
};

/** Joins all text of one object in a request. */
function textOf(answer: Answered<RequestView>, { key, object }: Change): string {
  if (answer.state !== 'there') return '';
  const isOf = (item: RequestView['items'][number]): boolean =>
    item.form === 'message' && item.step !== null
      ? `step:${item.step}` === key
      : (item.object ?? item.section) === (object ?? key);
  return answer.value.items
    .filter(isOf)
    .map(({ text }) => text)
    .join('');
}

type Prefix = NonNullable<Changes['prefix']>;

function Texts({
  change,
  session,
  prefix,
}: {
  readonly change: Change;
  readonly session: string;
  readonly prefix: Prefix;
}) {
  const before = useQuestion<RequestView>('/v1/request', { session, at: `step:${prefix.from.step}` });
  const after = useQuestion<RequestView>('/v1/request', { session, at: `step:${prefix.to.step}` });
  const name = oneLine(change.object === null ? speaker(change.name) : pathEnd(change.name, 80));
  return (
    <AnswerBox answer={before}>
      {() => (
        <AnswerBox answer={after}>
          {() => {
            const [was, is] = [textOf(before, change), textOf(after, change)];
            if (change.kind === 'changed')
              return <DiffView before={was} after={is} label={`How ${name} changed`} title={name} />;
            return <TextView text={GONE.has(change.kind) ? was : is} label={`${name}, as it was sent`} title={name} />;
          }}
        </AnswerBox>
      )}
    </AnswerBox>
  );
}

function Row({
  change,
  session,
  strip,
  prefix,
}: {
  readonly change: Change;
  readonly strip: Strip;
  readonly session: string;
  readonly prefix: Prefix | null;
}) {
  const [isOpen, setOpen] = useState(false);
  const { name, object, actor, why, step, tokens_before: before, tokens_after: after } = change;
  const shown = oneLine(object === null ? speaker(name) : pathEnd(name, 80));
  return (
    <>
      <tr>
        <td>
          <button type="button" class="quiet call-name" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <span class="caret" aria-hidden="true">
              {isOpen ? '▾' : '▸'}
            </span>
            {shown}
          </button>
        </td>
        <td>
          <span class={`chip ${actor === 'agent' ? 'note-of' : actor === 'rendering' ? '' : 'warn'}`}>
            {ACTORS[actor]}
          </span>{' '}
          {step === null ? (
            oneLine(why)
          ) : (
            <a href={from('conversation', { step })}>{oneLine(whyByCall(change, strip))}</a>
          )}
        </td>
        <td class="number" data-name="Tokens">
          {signed(after - before)}
        </td>
        <td class="number">{object !== null && <a href={from('object', { id: object })}>history</a>}</td>
      </tr>
      {isOpen && prefix !== null && (
        <tr>
          <td colSpan={4}>
            <Texts change={change} session={session} prefix={prefix} />
          </td>
        </tr>
      )}
    </>
  );
}

/** Shows why the cache was lost or kept, with the bytes in a fold below. */
function Cause({ changes, prefix }: { readonly changes: Changes; readonly prefix: Prefix }) {
  const { difference, shared, written, again, answers, to } = prefix;
  const { counted: provider } = changes;
  const isUnknown = provider === null && prefix.is_prefix && to.kind === 'transcript';
  const isLost = provider === null ? !prefix.is_prefix && again > 0 : provider.again > 0;
  return (
    <div class={`verdict ${isUnknown ? '' : isLost ? 'warn' : 'good'}`} role="status" aria-label="Why">
      <strong>{oneLine(changes.sentence, 500)}</strong>
      <details>
        <summary class="soft">Both requests, byte by byte, and the provider's count</summary>
        <dl class="facts">
          <dt>Same beginning</dt>
          <dd>
            {plural(shared.tokens, 'token')}, {plural(shared.bytes, 'byte')} of {counted(to.bytes)}
          </dd>
          {difference !== null && (
            <>
              <dt>First difference</dt>
              <dd>
                byte {counted(difference.byte)}, section {difference.section}, line {difference.line}
                {difference.object !== null && (
                  <>
                    , <a href={from('object', { id: difference.object })}>its history</a>
                  </>
                )}
              </dd>
            </>
          )}
          <dt>After it</dt>
          <dd>
            {plural(written, 'token')}, {counted(again)} of them sent before
            {prefix.cause !== null && `: ${oneLine(prefix.cause.why, 300)}`}
          </dd>
          <dt>Counted by the provider</dt>
          <dd>
            {provider === null
              ? 'not recorded'
              : `${plural(provider.read, 'token')} from its cache, ` +
                (provider.fewer > 0
                  ? `${counted(provider.fresh + provider.again)} new or written again, ` +
                    `${counted(provider.fewer)} fewer in all`
                  : `${counted(provider.fresh)} new, ${counted(provider.again)} written again`)}
          </dd>
          {answers !== null && (
            <>
              <dt>Reasoning of earlier answers</dt>
              <dd>
                {counted(answers.kept)} still valid, {counted(answers.lost)} lost, {counted(answers.left)} left with a
                closed turn
              </dd>
            </>
          )}
        </dl>
      </details>
    </div>
  );
}

function Filters({ changes }: { readonly changes: Changes }) {
  const { kind, from: since } = place.value.of;
  const kinds = (Object.keys(KINDS) as Change['kind'][]).filter((name) =>
    changes.changes.some((one) => one.kind === name),
  );
  return (
    <div class="filters">
      <label>
        Show{' '}
        <select value={kind ?? ''} onChange={(event) => refine({ kind: event.currentTarget.value })}>
          <option value="">everything</option>
          <option value="gone">what left or was collapsed</option>
          {kinds.map((name) => (
            <option key={name} value={name}>
              {KINDS[name].toLowerCase()}
            </option>
          ))}
        </select>
      </label>
      {since !== undefined && (
        <button type="button" onClick={() => refine({ from: undefined })}>
          Since the previous call
        </button>
      )}
    </div>
  );
}

function Found({ changes, strip }: { readonly changes: Changes; readonly strip: Strip }) {
  const { kind } = place.value.of;
  const { prefix, stayed, why, session, compaction } = changes;
  const shown = changes.changes.filter(
    (change) => kind === undefined || (kind === 'gone' ? GONE.has(change.kind) : change.kind === kind),
  );
  const numberOf = (step: number): string => counted(callNumber(strip, step));
  return (
    <>
      <div class="row call-head">
        <h2>
          {prefix === null
            ? 'Changes'
            : `Changes from call ${numberOf(prefix.from.step)} to call ${numberOf(prefix.to.step)}`}
          {prefix !== null && <small>{` turn ${prefix.to.turn} · ${localTime(prefix.to.at)}`}</small>}
        </h2>
        {prefix !== null && (
          <span class="soft">
            {counted(prefix.from.tokens)} → {plural(prefix.to.tokens, 'token')} (
            {signed(prefix.to.tokens - prefix.from.tokens)})
            {changes.counted !== null &&
              changes.counted.fewer > 0 &&
              `, ${counted(changes.counted.fewer)} fewer by the provider's count`}
          </span>
        )}
        <span class="spread" />
        {prefix !== null && (
          <a class="button first" href={from('request', { step: prefix.to.step })}>
            See the request
          </a>
        )}
      </div>
      {prefix?.to.kind === 'transcript' && <TranscriptNote />}
      {prefix === null ? (
        <div class="verdict warn" role="status" aria-label="Why">
          Not recorded: {oneLine(why ?? 'the requests themselves were not seen.', 400)}
        </div>
      ) : (
        <Cause changes={changes} prefix={prefix} />
      )}
      {compaction != null && <CompactionCard compaction={compaction} strip={strip} />}
      <Filters changes={changes} />
      {(Object.keys(KINDS) as Change['kind'][]).map((name) => {
        const own = shown.filter((change) => change.kind === name);
        if (own.length === 0) return null;
        return (
          <section key={name} aria-label={KINDS[name]}>
            <h2>
              {KINDS[name]} <small>{counted(own.length)}</small>
            </h2>
            <div class="wide">
              <table class="changes stack">
                <thead>
                  <tr>
                    <th>What</th>
                    <th>Why</th>
                    <th class="number">Tokens</th>
                    <th />
                  </tr>
                </thead>
                <tbody>
                  {own.map((change) => (
                    <Row key={change.key} change={change} session={session} strip={strip} prefix={prefix} />
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        );
      })}
      {shown.length === 0 && (
        <p class="note">
          {changes.counted !== null && changes.counted.fewer > 0
            ? 'Nothing of that kind is recorded.'
            : 'Nothing of that kind.'}
        </p>
      )}
      <p class="soft">{plural(stayed, 'part')} stayed as before.</p>
    </>
  );
}

/** Shows the changes from one call to the next, object by object. */
export function ChangesView() {
  const strip = useStrip();
  const { session, from: since } = place.value.of;
  const step = askedStep();
  const range = `${since === undefined ? '' : `step:${since}`}..${step === undefined ? 'now' : `step:${step}`}`;
  const answer = useQuestion<Changes>(session === undefined ? undefined : '/v1/changes', { session, range });
  return (
    <>
      <h1 class="hidden">What changed</h1>
      <AnswerBox answer={strip}>
        {(there) => <AnswerBox answer={answer}>{(changes) => <Found changes={changes} strip={there} />}</AnswerBox>}
      </AnswerBox>
    </>
  );
}
