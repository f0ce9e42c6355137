import { useState } from 'preact/hooks';
import { ownMember } from '../../values/own-member.js';
import { AnswerBox } from '../answer-box.js';
import { type Answered, useAnswer } from '../ask.js';
import { askedStep, keptWhileFollowed, useStrip } from '../calls.js';
import { DiffView } from '../diff-view.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import { TextView } from '../text-view.js';
import type { Change, Changes, RequestView } from '../wire.js';
import { counted, shortTime, signed } from '../words.js';

const KINDS: Readonly<Record<Change['kind'], string>> = {
  came: 'Came',
  loaded: 'Loaded: a line became its text',
  changed: 'Changed',
  moved: 'Moved',
  collapsed: 'Collapsed: its text became a line',
  left: 'Left',
};
const GONE: ReadonlySet<string> = new Set(['collapsed', 'left']);

const ACTORS: Readonly<Record<Change['actor'], string>> = {
  agent: 'agent',
  person: 'person',
  window: 'window',
  watcher: 'disk',
  epoch: 'epoch',
  harness: 'harness',
  rendering: 'rendering',
};

const VERDICTS: Readonly<Record<string, string>> = {
  agrees: 'as we expected',
  'read-less': 'less than we expected: its cache was cold, or something that is not recorded changed',
  'read-more': 'more than we expected',
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

function Texts({ change, changes }: { readonly change: Change; readonly changes: Changes }) {
  const { session, prefix } = changes;
  const before = useAnswer<RequestView>('/v1/request', { session, at: `step:${prefix.from.step}` });
  const after = useAnswer<RequestView>('/v1/request', { session, at: `step:${prefix.to.step}` });
  return (
    <AnswerBox answer={before}>
      {() => (
        <AnswerBox answer={after}>
          {() => {
            const [was, is] = [textOf(before, change), textOf(after, change)];
            if (change.kind === 'changed')
              return <DiffView before={was} after={is} label={`How ${change.name} changed`} />;
            return <TextView text={GONE.has(change.kind) ? was : is} label={`${change.name}, as it was sent`} />;
          }}
        </AnswerBox>
      )}
    </AnswerBox>
  );
}

function Row({ change, changes }: { readonly change: Change; readonly changes: Changes }) {
  const [isOpen, setOpen] = useState(false);
  const { name, object, actor, why, tokens_before: before, tokens_after: after } = change;
  return (
    <>
      <tr>
        <td>
          <button
            type="button"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
            aria-label={`Text of ${oneLine(name)}`}
          >
            {isOpen ? '−' : '+'}
          </button>{' '}
          {object === null ? oneLine(name) : <a href={from('object', { id: object })}>{oneLine(name)}</a>}
        </td>
        <td>
          <span class={`actor actor-${actor}`}>{ACTORS[actor]}</span>
        </td>
        <td>{oneLine(why)}</td>
        <td class="number">{signed(after - before)}</td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={4}>
            <Texts change={change} changes={changes} />
          </td>
        </tr>
      )}
    </>
  );
}

/**
 * Shows why the request does not begin with the whole previous one, and the report of the
 * provider's cache.
 */
function Cause({ changes }: { readonly changes: Changes }) {
  const { prefix } = changes;
  const { cause, difference, shared, written, again, answers, cache, to } = prefix;
  return (
    <section class="cause" aria-label="The common beginning">
      <h2>
        {prefix.is_prefix
          ? 'It begins with the whole request before it'
          : 'Where it parts from the request before it, and why'}
      </h2>
      {difference !== null && (
        <p>
          At byte {counted(difference.byte)} of {counted(to.bytes)}, after {counted(shared.tokens)} tokens: section{' '}
          {difference.section}, line {difference.line}
          {difference.object !== null && (
            <>
              , <a href={from('object', { id: difference.object })}>{oneLine(difference.object, 60)}</a>
            </>
          )}
          .
        </p>
      )}
      {cause !== null && (
        <p>
          <span class="actor">{cause.kind}</span> {oneLine(cause.why, 400)}
          {cause.epoch?.price != null &&
            `; ${counted(cause.epoch.price.written)} tokens written again, ` +
              `${counted(cause.epoch.price.saved_per_call)} saved a call`}
        </p>
      )}
      <dl class="facts">
        <dt>Written behind the common beginning</dt>
        <dd>
          {counted(written)} tokens, {counted(again)} of them again
        </dd>
        {answers !== null && (
          <>
            <dt>Answers of the model, with their reasoning</dt>
            <dd>
              {counted(answers.kept)} still valid, {counted(answers.lost)} lost, {counted(answers.left)} left with a
              closed turn
            </dd>
          </>
        )}
        <dt>The provider's cache</dt>
        <dd>
          {cache === null
            ? 'nothing is recorded of it'
            : `read ${counted(cache.read)} tokens, ${counted(cache.expected)} expected: ` +
              `${ownMember(VERDICTS, cache.verdict) ?? cache.verdict}`}
        </dd>
      </dl>
    </section>
  );
}

/** Shows the changes from one call to the next, object by object. */
export function ChangesView() {
  useStrip();
  const { session, from: since, kind } = place.value.of;
  const step = askedStep();
  const range = `${since === undefined ? '' : `step:${since}`}..${step === undefined ? 'now' : `step:${step}`}`;
  const answer = useAnswer<Changes>(
    session === undefined ? undefined : '/v1/changes',
    { session, range },
    keptWhileFollowed(),
  );
  return (
    <>
      <h1>From call to call</h1>
      <div class="filters">
        <label>
          Show{' '}
          <select value={kind ?? ''} onChange={(event) => refine({ kind: event.currentTarget.value })}>
            <option value="">everything</option>
            <option value="gone">what left or became a line</option>
            {Object.entries(KINDS).map(([name, told]) => (
              <option key={name} value={name}>
                {told}
              </option>
            ))}
          </select>
        </label>
        <label>
          Since step{' '}
          <input
            type="number"
            min="1"
            value={since ?? ''}
            placeholder="the call before"
            onChange={(event) => refine({ from: event.currentTarget.value })}
          />
        </label>
      </div>
      <AnswerBox answer={answer}>
        {(changes) => {
          const { prefix, stayed } = changes;
          const shown = changes.changes.filter(
            (change) => kind === undefined || (kind === 'gone' ? GONE.has(change.kind) : change.kind === kind),
          );
          return (
            <>
              <p>
                From turn {prefix.from.turn}, step {prefix.from.step} ({shortTime(prefix.from.at)},{' '}
                {counted(prefix.from.tokens)} tokens) to turn {prefix.to.turn}, step {prefix.to.step} (
                {shortTime(prefix.to.at)}, {counted(prefix.to.tokens)} tokens). {counted(stayed)} things stayed as they
                were.
              </p>
              <Cause changes={changes} />
              {(Object.keys(KINDS) as Change['kind'][]).map((name) => {
                const own = shown.filter((change) => change.kind === name);
                if (own.length === 0) return null;
                return (
                  <section key={name} aria-label={KINDS[name]}>
                    <h2>
                      {KINDS[name]} <small>{counted(own.length)}</small>
                    </h2>
                    <table class="changes">
                      <thead>
                        <tr>
                          <th>What</th>
                          <th>Who</th>
                          <th>Why</th>
                          <th class="number">Tokens</th>
                        </tr>
                      </thead>
                      <tbody>
                        {own.map((change) => (
                          <Row key={change.key} change={change} changes={changes} />
                        ))}
                      </tbody>
                    </table>
                  </section>
                );
              })}
              {shown.length === 0 && <p class="note">Nothing of that kind.</p>}
            </>
          );
        }}
      </AnswerBox>
    </>
  );
}
