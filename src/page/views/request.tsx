import { useEffect, useMemo, useState } from 'preact/hooks';
import { ownMember } from '../../values/own-member.js';
import { AnswerBox } from '../answer-box.js';
import { ask, useAnswer } from '../ask.js';
import { askedStep, keptWhileFollowed, useStrip } from '../calls.js';
import { from, place } from '../place.js';
import { sha256 } from '../sha256.js';
import { oneLine } from '../shown-text.js';
import { TextView } from '../text-view.js';
import type { PastContext, RequestItem, RequestView } from '../wire.js';
import { counted, shortTime } from '../words.js';

type Check =
  | { readonly state: 'checking' }
  | { readonly state: 'equal' | 'unequal'; readonly bytes: number; readonly sha256: string }
  | { readonly state: 'failed'; readonly why: string };

async function hashed(text: string): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const bytes = new TextEncoder().encode(text);
  return { bytes: bytes.length, sha256: await sha256(bytes) };
}

/**
 * Requests the whole context and hashes it in the browser. It is equal if it matches the call's
 * record.
 */
function useCheck(view: RequestView): Check {
  const [check, setCheck] = useState<Check>({ state: 'checking' });
  const { session, request } = view;
  useEffect(() => {
    let isWanted = true;
    setCheck({ state: 'checking' });
    ask<PastContext>('/v1/context', { session, at: `step:${request.step}` })
      .then(async ({ text }) => {
        const made = await hashed(text);
        if (isWanted) setCheck({ state: made.sha256 === request.sha256 ? 'equal' : 'unequal', ...made });
      })
      .catch((error: unknown) => {
        if (isWanted) setCheck({ state: 'failed', why: String(error) });
      });
    return () => {
      isWanted = false;
    };
  }, [session, request.step, request.sha256]);
  return check;
}

/** Replaces the proof if text was masked. */
function Masked({ view }: { readonly view: RequestView }) {
  return (
    <div class="check checking" role="status" aria-label="Check">
      This file masks a part of the request, so it is not the delivered one, whose hash is left out. The masked request
      has the hash <code class="digest">{view.request.sha256}</code>
    </div>
  );
}

function Verified({ view }: { readonly view: RequestView }) {
  const check = useCheck(view);
  const { request, unequal } = view;
  return (
    <div class={`check ${check.state}`} role="status" aria-label="Check">
      {check.state === 'checking' && 'Rebuilt. This browser is hashing it…'}
      {check.state === 'equal' &&
        (request.rebuilt_from !== undefined
          ? `Rebuilt from ${request.rebuilt_from} earlier requests and this one (${counted(check.bytes)} bytes). The ` +
            'request itself had only the new part; the provider held the rest.'
          : request.kind === 'sent'
            ? `✓ Rebuilt byte for byte: ${counted(check.bytes)} bytes, hashed by this browser, equal the delivered ` +
              'request.'
            : `Rebuilt byte for byte as a replay of the transcript rendered it (${counted(check.bytes)} bytes). The ` +
              'model was sent the request of its own harness.')}
      {check.state === 'unequal' && `✗ Not the delivered request: ${unequal?.why ?? 'the hash is another one'}`}
      {check.state === 'failed' && `The check failed: ${check.why}`}
      <code class="digest">recorded {request.sha256}</code>
      {check.state !== 'checking' && check.state !== 'failed' && (
        <code class="digest">made &nbsp;&nbsp;&nbsp;&nbsp;{check.sha256}</code>
      )}
    </div>
  );
}

const TITLES: Readonly<Record<string, string>> = {
  system: 'System prompt',
  pool: 'Metadata pool',
  chat: 'Chat',
  active: 'Active content',
  notes: 'Notes of the epoch',
  list: "The harness's own messages",
};

interface Group {
  readonly section: string;
  readonly items: readonly RequestItem[];
}

/** Groups adjacent parts of one section. */
function groupsOf(items: readonly RequestItem[]): readonly Group[] {
  const groups: { section: string; items: RequestItem[] }[] = [];
  for (const item of items) {
    const last = groups.at(-1);
    if (last?.section === item.section) last.items.push(item);
    else groups.push({ section: item.section, items: [item] });
  }
  return groups;
}

function Item({ item }: { readonly item: RequestItem }) {
  const { name, object, step, version, tokens, text } = item;
  return (
    <details open class="item">
      <summary>
        {oneLine(name)}{' '}
        <small>
          {version !== null &&
            `version ${version.number}, true from ${shortTime(version.valid_time)}, known since transaction ` +
              `${version.tx_id} · `}
          {step !== null && `step ${step} · `}
          {counted(tokens)} tokens
        </small>
      </summary>
      {object !== null && <a href={from('object', { id: object })}>its versions</a>}
      <TextView text={text.endsWith('\n') ? text.slice(0, -1) : text} label={`${name}, as it was sent`} />
    </details>
  );
}

function Section({ group }: { readonly group: Group }) {
  const { section, items } = group;
  const tokens = items.reduce((sum, item) => sum + item.tokens, 0);
  const isList = items.every(({ form }) => form === 'line' || form === 'plain');
  const text = useMemo(() => items.map((item) => item.text).join(''), [items]);
  return (
    <details open class="section">
      <summary>
        <h2>{ownMember(TITLES, section) ?? section}</h2>{' '}
        <small>{`${counted(items.length)} parts, ${counted(tokens)} tokens`}</small>
      </summary>
      {isList ? (
        <TextView text={text.endsWith('\n') ? text.slice(0, -1) : text} label={ownMember(TITLES, section) ?? section} />
      ) : (
        items.map((item, i) => <Item key={i} item={item} />)
      )}
    </details>
  );
}

const epochText = (epoch: number | null): string => (epoch === null ? '' : `, epoch ${epoch}`);

/** Shows one call's request, part by part, with its verification. */
export function RequestPage() {
  useStrip();
  const { session } = place.value.of;
  const step = askedStep();
  const at = step === undefined ? undefined : `step:${step}`;
  const answer = useAnswer<RequestView>(
    session === undefined ? undefined : '/v1/request',
    { session, at },
    keptWhileFollowed(),
  );
  return (
    <>
      <h1>Request</h1>
      <AnswerBox answer={answer}>
        {(view) => (
          <>
            <p>
              Request {view.number} of {view.total}: turn {view.request.turn}, step {view.request.step},{' '}
              {shortTime(view.request.at)}, layout {view.request.layout}
              {epochText(view.request.epoch)}, sent by {view.request.delivered}. {counted(view.request.tokens)} tokens (
              {view.tokenizer}
              ), {counted(view.request.bytes)} bytes.
            </p>
            <nav aria-label="Calls">
              {view.previous !== null && <a href={from('request', { step: view.previous })}>← the call before</a>}{' '}
              {view.next !== null && <a href={from('request', { step: view.next })}>the next call →</a>}{' '}
              <a href={from('changes', { step: view.request.step })}>what changed</a>
            </nav>
            {view.redacted === true ? <Masked view={view} /> : <Verified view={view} />}
            {groupsOf(view.items).map((group, i) => (
              <Section key={i} group={group} />
            ))}
          </>
        )}
      </AnswerBox>
    </>
  );
}
