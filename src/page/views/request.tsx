import { useEffect, useMemo, useState } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import { ask } from '../ask.js';
import { callLines } from '../call-lines.js';
import { askedStep, callNumber, knownTx, useQuestion, useStrip } from '../calls.js';
import { countedTexts } from '../counted-texts.js';
import { CutName } from '../cut-name.js';
import { newParts } from '../new-parts.js';
import { from, place } from '../place.js';
import { requestSize } from '../request-size.js';
import { sha256 } from '../sha256.js';
import { oneLine } from '../shown-text.js';
import { fallsOf, sectionOf, usedTokens } from '../strip-layout.js';
import { TextView } from '../text-view.js';
import type { PastContext, RequestItem, RequestView, Strip } from '../wire.js';
import { counted, localTime, pathEnd, plural, speaker } from '../words.js';

type Check =
  | { readonly state: 'checking' }
  | { readonly state: 'equal' | 'unequal'; readonly text: string; readonly sha256: string }
  | { readonly state: 'failed'; readonly why: string };

/**
 * Requests the whole context, hashes it in the browser, and compares the hash with the call's
 * record.
 */
function useCheck(session: string, step: number, recorded: string): Check {
  const [check, setCheck] = useState<Check>({ state: 'checking' });
  const tx = knownTx();
  useEffect(() => {
    let isWanted = true;
    setCheck({ state: 'checking' });
    ask<PastContext>('/v1/context', { session, at: `step:${step}`, tx })
      .then(async ({ text }) => {
        const made = await sha256(new TextEncoder().encode(text));
        if (isWanted) setCheck({ state: made === recorded ? 'equal' : 'unequal', text, sha256: made });
      })
      .catch((error: unknown) => {
        if (isWanted) setCheck({ state: 'failed', why: error instanceof Error ? error.message : String(error) });
      });
    return () => {
      isWanted = false;
    };
  }, [session, step, recorded]);
  return check;
}

type Recorded = NonNullable<RequestView['request']>;

function verdictOf(check: Check, { kind }: Recorded, unequal: RequestView['unequal']): readonly [string, string] {
  if (check.state === 'checking') return ['', 'This browser is hashing the request…'];
  if (check.state === 'failed') return ['bad', `The check failed: ${check.why}`];
  if (check.state === 'unequal')
    return ['bad', `✗ This is not the request that was sent: ${unequal?.why ?? 'its hash differs'}`];
  return kind === 'sent'
    ? ['good', '✓ Exactly what was sent to the model: this browser hashed it and found the recorded hash.']
    : [
        'warn',
        'As the transcript has it. The agent built this request itself, and it was not recorded. The last part says ' +
          'what the transcript does not have.',
      ];
}

function Verified({ view, request }: { readonly view: RequestView; readonly request: Recorded }) {
  const check = useCheck(view.session, request.step, request.sha256);
  const [tone, verdict] =
    view.redacted === true
      ? ['', 'A part of this request is masked, so it differs from the sent request, whose hash is left out.']
      : verdictOf(check, request, view.unequal);
  return (
    <div class={`verdict ${tone}`} role="status" aria-label="Check">
      {verdict}
      <details>
        <summary class="soft">Hashes and size</summary>
        <dl class="facts">
          <dt>size</dt>
          <dd>{plural(request.bytes, 'byte')}</dd>
          <dt>
            {view.redacted === true
              ? 'of the masked request'
              : request.kind === 'sent'
                ? 'recorded'
                : 'of the text from the transcript'}
          </dt>
          <dd>
            <code>{request.sha256}</code>
          </dd>
          {'sha256' in check && (
            <>
              <dt>of this text</dt>
              <dd>
                <code>{check.sha256}</code>
              </dd>
            </>
          )}
        </dl>
      </details>
      {'text' in check && (
        <details>
          <summary class="soft">The whole request as one text</summary>
          <TextView text={check.text} label="The whole request" file={`${view.session}-step-${request.step}.txt`} />
        </details>
      )}
    </div>
  );
}

/** Adjacent parts of one section. */
interface Group {
  readonly section: string;
  readonly items: readonly RequestItem[];
  readonly tokens: number;
}

function groupsOf(items: readonly RequestItem[]): readonly Group[] {
  const groups: { section: string; items: RequestItem[]; tokens: number }[] = [];
  for (const item of items) {
    const last = groups.at(-1);
    if (last?.section === item.section) {
      last.items.push(item);
      last.tokens += item.tokens;
    } else groups.push({ section: item.section, items: [item], tokens: item.tokens });
  }
  return groups;
}

const nameOf = (section: string): string => sectionOf(section).name;
const colorOf = (section: string): string => `var(${sectionOf(section).color})`;

/** The sizes of the sections as one bar. */
function Composition({ groups }: { readonly groups: readonly Group[] }) {
  return (
    <>
      <div class="parts" aria-hidden="true">
        {groups.map(({ section, tokens }, i) => (
          <i key={i} style={{ flexGrow: tokens, background: colorOf(section) }} title={nameOf(section)} />
        ))}
      </div>
      <ul class="legend">
        {groups.map(({ section, tokens, items }, i) => (
          <li key={i}>
            <i style={{ background: colorOf(section) }} /> {nameOf(section)}{' '}
            <span class="soft">
              {plural(tokens, 'token')}
              {items.length > 1 && `, ${plural(items.length, 'part')}`}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The line before an object's text. */
const LABEL = /^(ACTIVE_CONTENT|TOOL_RESULT|FILE) /;

/** Returns the first words of a part, without its label. */
function startOf({ object, name, text }: RequestItem): string {
  const isMessage = object === null && text.startsWith(`${name}:`);
  const lines = (isMessage ? text.slice(name.length + 1) : text).trimStart().split('\n', 6);
  return lines.find((line) => line.trim() !== '' && !(object !== null && LABEL.test(line)))?.trim() ?? '';
}

interface ItemProps {
  readonly item: RequestItem;
  readonly most: number;
  readonly isOpen: boolean;
  /** Whether an earlier part is the call that this part answers. */
  readonly isResult: boolean;
  readonly isNew: boolean;
  readonly isTranscript: boolean;
}

function Item({ item, most, isOpen, isResult, isNew, isTranscript }: ItemProps) {
  const { section, name, object, step, version, tokens, text } = item;
  const [open, setOpen] = useState(isOpen);
  const lines = open && isTranscript && object !== null && !isResult ? callLines(text) : undefined;
  const shown = oneLine(object === null ? speaker(name) : pathEnd(name, 80), 100);
  return (
    <details class={isNew ? 'item new' : 'item'} open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="item-name">
          <CutName text={shown} />
        </span>
        {isResult && <span class="chip">result</span>}
        {isNew && <span class="chip good">new</span>}
        {version !== null && <span class="chip">version {version.number}</span>}
        <span class="item-start soft">{open ? '' : oneLine(startOf(item), 140)}</span>
        <span class="item-bar" aria-hidden="true">
          <i style={{ width: `${Math.max(1, (tokens * 100) / most)}%`, background: colorOf(section) }} />
        </span>
        <span class="number soft">{counted(tokens)}</span>
      </summary>
      {open && (
        <TextView
          text={lines ?? text}
          label={isTranscript ? shown : `${shown}, as it was sent`}
          title={
            <>
              {lines !== undefined && 'Line by line; the import may have renamed the tool and sorted its arguments · '}
              {object !== null && <a href={from('object', { id: object })}>History of {shown}</a>}
              {object === null && step !== null && <a href={from('conversation', { step })}>In the conversation</a>}
              {version !== null && ` · as it was on ${localTime(version.valid_time)}`}
            </>
          }
          file={`${name}.txt`}
        />
      )}
    </details>
  );
}

interface SectionProps {
  readonly group: Group;
  readonly most: number;
  readonly isNew: (item: RequestItem) => boolean;
  readonly isTranscript: boolean;
}

function Section({ group, most, isNew, isTranscript }: SectionProps) {
  const { section, items, tokens } = group;
  const objects = items.map(({ object }) => object);
  const isList = items.length > 1 && items.every(({ form }) => form === 'line' || form === 'plain');
  const text = useMemo(() => (isList ? items.map((item) => item.text).join('') : ''), [items]);
  return (
    <section class="card flush" aria-label={nameOf(section)}>
      <h2 class="section-head">
        <i class="swatch" style={{ background: colorOf(section) }} /> {nameOf(section)}{' '}
        <small>{plural(tokens, 'token')}</small>
      </h2>
      {isList ? (
        <details class="item">
          <summary>
            <span class="item-name">{plural(items.length, 'line')}, one for each file and call</span>
            <span class="spread" />
            <span class="number soft">{counted(tokens)}</span>
          </summary>
          <TextView text={text} label={nameOf(section)} />
        </details>
      ) : (
        items.map((item, i) => (
          <Item
            key={i}
            item={item}
            most={most}
            isOpen={items.length === 1 && tokens < 400}
            isResult={item.object !== null && item.step !== null && objects.indexOf(item.object) < i}
            isNew={isNew(item)}
            isTranscript={isTranscript}
          />
        ))
      )}
    </section>
  );
}

interface HeadProps {
  readonly view: RequestView;
  readonly strip: Strip | undefined;
  /** The number of parts that the previous request did not have. */
  readonly news: number;
}

/** Goes to the first part that the previous request did not have. */
function showNew(): void {
  const part = document.querySelector('.item.new > summary');
  part?.scrollIntoView({ block: 'center' });
  if (part instanceof HTMLElement) part.focus({ preventScroll: true });
}

/** Shows the number of the call, and whether the shown request is the one that was sent. */
function Head({ view, strip, news }: HeadProps) {
  const { request, previous, next } = view;
  const number = request === null || strip === undefined ? view.number : callNumber(strip, request.step);
  const call = strip?.calls.find(({ step }) => step === request?.step);
  const size = requestSize({
    provider: call === undefined ? undefined : usedTokens(call),
    texts: countedTexts(view).total,
    isTranscript: request?.kind === 'transcript',
  });
  const model = call?.usage?.model;
  const fall = strip === undefined ? undefined : fallsOf(strip).find(({ step }) => step === request?.step);
  return (
    <div class="row call-head">
      <h2>
        {request === null
          ? 'What is known'
          : `Call ${counted(number)}, ${request.kind === 'sent' ? 'as the model saw it' : 'as the transcript has it'}`}
        {request !== null && <small>{` turn ${request.turn} · ${localTime(request.at)}`}</small>}
      </h2>
      <span class="soft">{size}</span>
      {model !== undefined && <span class="chip">{oneLine(model, 60)}</span>}
      {fall !== undefined && (
        <span class="chip warn">the provider counted {counted(fall.fewer)} fewer; which text left is not recorded</span>
      )}
      {request?.epoch != null && <span class="chip">epoch {request.epoch}</span>}
      <span class="spread" />
      <span class="row">
        {news > 0 && (
          <button type="button" onClick={showNew}>
            {plural(news, 'new part')} ↓
          </button>
        )}
        {previous !== null && (
          <a class="button" href={from('request', { step: previous })}>
            ‹ Call before
          </a>
        )}
        {next !== null && (
          <a class="button" href={from('request', { step: next })}>
            Next call ›
          </a>
        )}
        {request !== null && (
          <a class="button first" href={from('changes', { step: request.step })}>
            What changed
          </a>
        )}
      </span>
    </div>
  );
}

/** Shows what the model was sent at one call, part by part, with its verification. */
export function RequestPage() {
  const strip = useStrip();
  const { session } = place.value.of;
  const step = askedStep();
  const at = step === undefined ? undefined : `step:${step}`;
  const answer = useQuestion<RequestView>(session === undefined ? undefined : '/v1/request', { session, at });
  return (
    <>
      <h1 class="hidden">Call</h1>
      <AnswerBox answer={answer}>
        {(view) => {
          const groups = groupsOf(view.items);
          const most = Math.max(1, ...view.items.map(({ tokens }) => tokens));
          const there = strip.state === 'there' ? strip.value : undefined;
          const isNew = newParts(view, there);
          return (
            <>
              <Head view={view} strip={there} news={view.items.filter(isNew).length} />
              {view.request === null ? (
                <div class="verdict warn" role="status" aria-label="Check">
                  Not recorded: {view.why ?? 'the request itself was not seen. These parts are known from elsewhere.'}
                </div>
              ) : (
                <Verified view={view} request={view.request} />
              )}
              {view.edits.map(({ step: at, name, sight }, i) => (
                <p key={i} class={sight?.is_doubtful ? 'verdict warn' : 'note'}>
                  Its answer has <a href={from('conversation', { step: at })}>{oneLine(name, 80)}</a>. {sight?.sentence}
                </p>
              ))}
              <Composition groups={groups} />
              {groups.map((group, i) => (
                <Section
                  key={i}
                  group={group}
                  most={most}
                  isNew={isNew}
                  isTranscript={view.request?.kind === 'transcript'}
                />
              ))}
            </>
          );
        }}
      </AnswerBox>
    </>
  );
}
