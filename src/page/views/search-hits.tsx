import { callNumber } from '../calls.js';
import { from, place } from '../place.js';
import { oneLine } from '../shown-text.js';
import { makerOf } from '../strip-layout.js';
import { Runs } from '../text-view.js';
import type { Search, SearchHit, Strip } from '../wire.js';
import { counted, localTime, pathEnd, plural, speaker } from '../words.js';

type Ranges = SearchHit['whole'];
type Fall = SearchHit['seen'][number]['falls'][number];
const MOST_RANGES = 12;

/** Warns that only the transcript shows that a text stayed, if the provider's count fell. */
function Falls({ ranges, falls: all }: { readonly ranges: Ranges; readonly falls: readonly Fall[] }) {
  const falls = all.filter(({ step }) => ranges.some(({ from: first, to }) => step > first && step <= to));
  const [fall] = falls;
  if (fall === undefined) return null;
  return (
    <span class="soft">
      {' '}
      by the transcript. At call {counted(fall.call)} the provider counted {counted(fall.fewer)} fewer; which text left
      is not recorded{falls.length > 1 && `, as at ${plural(falls.length - 1, 'later call')}`}.
    </span>
  );
}

function Exposure({
  label,
  ranges,
  strip,
  falls = [],
}: {
  readonly label: string;
  readonly ranges: Ranges;
  readonly strip: Strip | undefined;
  readonly falls?: readonly Fall[];
}) {
  if (ranges.length === 0) return null;
  const numberOf = (step: number): string => counted(strip === undefined ? step : callNumber(strip, step));
  return (
    <p class="exposure">
      <span class="soft">
        {label} at {strip === undefined ? 'steps' : 'calls'}
      </span>{' '}
      {ranges.slice(0, MOST_RANGES).map(({ from: first, to: last, calls }, i) => (
        <span key={first}>
          {i > 0 && ', '}
          <a href={from('request', { step: first })}>
            {calls === 1 ? numberOf(first) : `${numberOf(first)}–${numberOf(last)}`}
          </a>
        </span>
      ))}
      {ranges.length > MOST_RANGES && ` and ${counted(ranges.length - MOST_RANGES)} more`}
      <Falls ranges={ranges} falls={falls} />
    </p>
  );
}

const KINDS: Readonly<Record<SearchHit['kind'], string>> = {
  message: 'message',
  toolcall: 'result of a call',
  file: 'file',
  system_prompt: 'system prompt',
};

const shownName = ({ kind, name }: SearchHit): string =>
  oneLine(kind === 'message' ? speaker(name) : kind === 'file' ? pathEnd(name, 80) : name, 100);

function Hit({
  hit,
  strip,
  seen,
}: {
  readonly hit: SearchHit;
  readonly strip: Strip | undefined;
  readonly seen: boolean;
}) {
  const { kind, part, object, version, count, lines, whole, in_part: inPart, as_line: asLine, step, turn, at } = hit;
  const session = hit.session ?? place.value.of.session;
  const isOther = session !== place.value.of.session;
  const falls = hit.seen.find((one) => one.session === session)?.falls ?? [];
  const to = isOther ? { session, tx: undefined } : {};
  return (
    <li class="card">
      <div class="row">
        <strong>
          {step !== null ? (
            <a href={from('conversation', { ...to, step })}>{shownName(hit)}</a>
          ) : (
            <a href={from('object', { ...to, id: object ?? '', ...(version === null ? {} : { b: version.number }) })}>
              {shownName(hit)}
            </a>
          )}
        </strong>
        <span class="soft">
          {part === 'arguments' ? 'arguments of a call' : KINDS[kind]}
          {kind === 'file' && version !== null && `, version ${version.number}`}
          {turn !== null && ` · turn ${turn}`}
          {step !== null && strip !== undefined && !isOther && `, call ${counted(makerOf(strip, step))}`}
          {at != null && ` · ${localTime(at)}`}
        </span>
        {isOther && <span class="chip">{oneLine(session ?? '')}</span>}
        <span class="spread" />
        <span class="chip">{plural(count, 'place')}</span>
      </div>
      <div class="hit-lines">
        {lines.map(({ line, excerpt, marks }) => (
          <div class="text-row" key={line}>
            <span class="gutter">{line}</span>
            <Runs text={excerpt} marks={marks.map(({ at, end }) => ({ from: at, to: end }))} />
          </div>
        ))}
      </div>
      <Exposure label="In full in the context" ranges={whole} strip={isOther ? undefined : strip} falls={falls} />
      <Exposure label="A part of the file" ranges={inPart} strip={isOther ? undefined : strip} falls={falls} />
      <Exposure label="As one line" ranges={asLine} strip={isOther ? undefined : strip} />
      {whole.length + inPart.length + asLine.length === 0 && (
        <p class="exposure soft">
          {seen
            ? 'In the context of no call that was seen.'
            : 'Not recorded: the requests of this session were not seen.'}
        </p>
      )}
    </li>
  );
}

/** Lists matching texts with their marked lines, and the calls that saw each. */
export function SearchHits({ hits, strip }: { readonly hits: Search['hits']; readonly strip: Strip | undefined }) {
  const seen = strip === undefined || strip.calls.some(({ kind }) => kind !== 'unseen');
  return (
    <ol class="plain">
      {hits.map((hit, i) => (
        <Hit key={i} hit={hit} strip={strip} seen={seen} />
      ))}
    </ol>
  );
}
