import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AnswerBox, Waiting } from '../answer-box.js';
import { ask, useAnswer } from '../ask.js';
import { ofOneCall } from '../call-rows.js';
import { knownTx, useSessionStrip, useStrip } from '../calls.js';
import { type RowOf, shownRow } from '../conversation-row.js';
import { LazyBlock } from '../lazy-block.js';
import { ForkHere } from '../person.js';
import { from, place } from '../place.js';
import { oneLine } from '../shown-text.js';
import { makerOf, requestOf } from '../strip-layout.js';
import type { Conversation, ConversationRow, Strip } from '../wire.js';
import { clockTime, counted } from '../words.js';

/** Number of rows that one question asks for. */
const ASKED = 200;
const TOGETHER = 25;
const ROW_PX = 48;
/** Milliseconds for which a chosen row is kept in view while the rows around it are loaded. */
const KEPT_MS = 10_000;

const keyOf = (row: ConversationRow, i: number): string =>
  `${row.kind} ${row.step} ${'id' in row ? row.id : 'object' in row ? `${row.object} ${row.version.number}` : i}`;

/**
 * Scrolls to an element, and again whenever rows around it are loaded, until the reader scrolls.
 * The returned function ends this.
 */
function keepInView(element: HTMLElement): () => void {
  const ended = new AbortController();
  const show = (): void => element.scrollIntoView({ block: 'center' });
  const observer = new ResizeObserver(show);
  const end = (): void => {
    observer.disconnect();
    ended.abort();
  };
  for (const event of ['wheel', 'touchstart', 'keydown', 'pointerdown'])
    addEventListener(event, end, { signal: ended.signal, passive: true });
  const timer = setTimeout(end, KEPT_MS);
  ended.signal.addEventListener('abort', () => clearTimeout(timer));
  show();
  observer.observe(document.body);
  return end;
}

interface PlacedProps {
  readonly row: ConversationRow;
  readonly isChosen: boolean;
  /** The rows of the chosen call, which have one frame. */
  readonly framed: readonly ConversationRow[];
}

function Placed({ row, isChosen, framed }: PlacedProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => (isChosen && box.current !== null ? keepInView(box.current) : undefined), [isChosen]);
  const strip = useSessionStrip();
  const there = strip.state === 'there' && strip.value.calls.length > 0 ? strip.value : undefined;
  const number = row.kind === 'call' && there !== undefined ? makerOf(there, row.step) : undefined;
  const frame = [
    ...(framed.includes(row) ? ['framed'] : []),
    ...(row === framed[0] ? ['first-framed'] : []),
    ...(row === framed.at(-1) ? ['last-framed'] : []),
  ];
  return (
    <div ref={box} class={['placed', ...frame].join(' ')}>
      {number === undefined ? (
        <span class="place-number" />
      ) : (
        <a
          class="place-number"
          href={from('conversation', { step: row.step })}
          aria-label={`Made by call ${number}`}
          title={`Made by call ${number} of the model, ${row.kind === 'turn' ? '' : clockTime(row.at)}`}
        >
          {counted(number)}
        </a>
      )}
      {shownRow(row)}
      {row === framed.at(-1) && there !== undefined && row.kind !== 'turn' && (
        <div class="chosen-acts">
          <ForkHere step={requestOf(there, row.step)} call={makerOf(there, row.step)} />
        </div>
      )}
    </div>
  );
}

/** The rows that were loaded so far, and the steps before and after which more rows begin. */
interface Read {
  readonly rows: readonly ConversationRow[];
  readonly before: number | null;
  readonly after: number | null;
}

/** Requests more rows when it comes near the screen. */
function More({ label, onWanted }: { readonly label: string; readonly onWanted: () => void }) {
  const box = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const observer = new IntersectionObserver(
      (seen) => seen.some(({ isIntersecting }) => isIntersecting) && onWanted(),
      {
        rootMargin: '600px 0px',
      },
    );
    observer.observe(element);
    return () => observer.disconnect();
  });
  return (
    <button type="button" class="quiet" ref={box} onClick={onWanted}>
      {label}
    </button>
  );
}

/** Says that nothing was dropped in the whole session, which the shown rows alone do not prove. */
function NothingDropped() {
  const strip = useSessionStrip();
  if (strip.state !== 'there') return null;
  const isDropped = strip.value.marks.some(
    ({ kind, event }) => kind === 'epoch' || event === 'compacted' || event === 'shortened',
  );
  return isDropped ? null : <p class="soft">No compaction and no epoch is recorded in this session.</p>;
}

type Prompt = Conversation['prompts'][number];

/** Adds the prompts that a followed session got since the list of all was read. */
function withNewPrompts(prompts: readonly Prompt[], rows: readonly ConversationRow[]): readonly Prompt[] {
  const last = prompts.at(-1)?.step ?? 0;
  const isNew = (row: ConversationRow): row is RowOf<'message'> =>
    row.kind === 'message' && (row.role === 'user' || row.role === 'parent') && row.step > last;
  return [...prompts, ...rows.filter(isNew)];
}

interface OutlineProps {
  readonly prompts: readonly Prompt[];
  /** The step of the address, if it has one. */
  readonly here: number | undefined;
}

/** Lists the prompts of the session. */
function Outline({ prompts, here }: OutlineProps) {
  const list = useRef<HTMLElement>(null);
  const current = here === undefined ? undefined : prompts.findLast(({ step }) => step <= here)?.step;
  useEffect(() => {
    const box = list.current;
    const link = box?.querySelector<HTMLElement>('[aria-current]');
    if (box !== null && link != null) box.scrollTop = link.offsetTop - box.clientHeight / 2;
  }, [current]);
  if (prompts.length < 2) return null;
  return (
    <nav class="outline" aria-label="Prompts" ref={list}>
      <ol>
        {prompts.map(({ turn, step, text }) => (
          <li key={step}>
            <a href={from('conversation', { step })} aria-current={step === current ? 'location' : undefined}>
              <span class="soft">{turn}</span> {oneLine(text.trim().split('\n')[0] ?? '', 80)}
            </a>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** Links a sub-agent's session to the call that started it. */
function StartedBy({ by: { session, step, name } }: { readonly by: NonNullable<Conversation['started_by']> }) {
  return (
    <p class="soft">
      A sub-agent, started by{' '}
      <a href={from('conversation', { session, tx: undefined, step: step ?? undefined })}>
        {oneLine(name ?? 'another session', 100)}
      </a>
    </p>
  );
}

interface RowsProps {
  readonly first: Conversation;
  /** Called for a step that is in none of the rows. */
  readonly onBeyond: (step: string) => void;
}

function Rows({ first, onBeyond }: RowsProps) {
  const { session, step, live } = place.value.of;
  const tx = knownTx();
  const strip = useSessionStrip();
  const [read, setRead] = useState<Read>(first);
  useEffect(() => setRead(first), [first]);
  const [isReading, setReading] = useState(false);
  const askedAt = useRef(tx);
  const more = (where: { readonly before: number } | { readonly after: number }): void => {
    if (isReading) return;
    setReading(true);
    if ('after' in where) askedAt.current = tx;
    ask<Conversation>('/v1/conversation', { session, tx, limit: ASKED, ...where })
      .then(({ rows, before, after }) =>
        setRead((known) =>
          'before' in where
            ? { ...known, rows: [...rows, ...known.rows], before }
            : { ...known, rows: [...known.rows, ...rows], after },
        ),
      )
      .catch(() => undefined)
      .finally(() => setReading(false));
  };
  const { before, after } = read;
  const rows = useMemo(() => read.rows.filter((row) => row.kind !== 'message' || row.text.trim() !== ''), [read.rows]);
  useEffect(() => {
    // The session may have got steps while rows were loaded.
    if (live !== undefined && after === null && askedAt.current !== tx) more({ after: read.rows.at(-1)?.step ?? 0 });
  }, [tx, isReading]);
  const chosen =
    step === undefined
      ? undefined
      : (rows.find((row) => row.kind !== 'turn' && row.step >= Number(step)) ?? rows.at(-1));
  const calls = strip.state === 'there' ? strip.value.calls : [];
  const framed = useMemo(() => ofOneCall(rows, chosen, calls), [rows, chosen, calls]);
  const prompts = useMemo(() => withNewPrompts(first.prompts, read.rows), [first, read.rows]);
  const isBeyond =
    step !== undefined &&
    ((before !== null && Number(step) < (rows[0]?.step ?? 0)) ||
      (after !== null && Number(step) > (rows.at(-1)?.step ?? 0)));
  useEffect(() => {
    if (isBeyond && step !== undefined) onBeyond(step);
  }, [isBeyond, step]);
  const blocks = useMemo(() => {
    const found: ConversationRow[][] = [];
    for (const row of rows) {
      const last = found.at(-1);
      if (last === undefined || last.length >= TOGETHER || row.kind === 'turn') found.push([row]);
      else last.push(row);
    }
    return found;
  }, [rows]);
  if (rows.length === 0) return <p class="note">Nothing has happened in this session up to here.</p>;
  return (
    <div class="conversation">
      <Outline prompts={prompts} here={step === undefined ? undefined : Number(step)} />
      <div class="entries">
        {first.started_by !== null && <StartedBy by={first.started_by} />}
        {before === null && <NothingDropped />}
        {before !== null && <More label="Earlier" onWanted={() => more({ before })} />}
        {blocks.map((block) => (
          <LazyBlock
            key={keyOf(block[0] as ConversationRow, 0)}
            height={block.length * ROW_PX}
            isWanted={chosen !== undefined && block.includes(chosen)}
          >
            {() =>
              block.map((row, i) => <Placed key={keyOf(row, i)} row={row} isChosen={row === chosen} framed={framed} />)
            }
          </LazyBlock>
        ))}
        {after !== null && <More label="Later" onWanted={() => more({ after })} />}
      </div>
    </div>
  );
}

/** Shows the conversation around the step of the address, or the end of a followed session. */
function Around({ strip }: { readonly strip: Strip }) {
  const { session, step, live } = place.value.of;
  const [around, setAround] = useState(step);
  // Rows of a followed session are added by their steps, so the first transaction and end are kept.
  const [{ tx, end }] = useState({ tx: knownTx(), end: strip.last_step + 1 });
  const isAtEnd = around === undefined && live !== undefined;
  const answer = useAnswer<Conversation>('/v1/conversation', {
    session,
    tx: live === undefined ? knownTx() : tx,
    around,
    before: isAtEnd ? end : undefined,
    limit: ASKED,
  });
  return (
    <AnswerBox answer={answer}>
      {(conversation) => <Rows key={around} first={conversation} onBeyond={setAround} />}
    </AnswerBox>
  );
}

/** Shows a session as a conversation: prompts, prose, calls with results, and changes by others. */
export function ConversationView() {
  const strip = useStrip();
  return (
    <>
      <h1 class="hidden">Conversation</h1>
      <AnswerBox answer={strip}>
        {(there) => (knownTx() === undefined ? <Waiting /> : <Around key={there.session} strip={there} />)}
      </AnswerBox>
    </>
  );
}
