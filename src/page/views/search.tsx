import { AnswerBox } from '../answer-box.js';
import { callNumber, useQuestion, useSessionStrip, useStrip } from '../calls.js';
import { from, goTo, place } from '../place.js';
import { oneLine } from '../shown-text.js';
import { Runs } from '../text-view.js';
import type { Search, SearchHit, Strip } from '../wire.js';
import { counted, localTime, pathEnd, plural } from '../words.js';

type Ranges = SearchHit['whole'];
const MOST_RANGES = 12;

function Exposure({
  label,
  ranges,
  strip,
}: {
  readonly label: string;
  readonly ranges: Ranges;
  readonly strip: Strip | undefined;
}) {
  if (ranges.length === 0) return null;
  const numberOf = (step: number): string => (strip === undefined ? `step ${step}` : counted(callNumber(strip, step)));
  return (
    <p class="exposure">
      <span class="soft">{label}</span>{' '}
      {ranges.slice(0, MOST_RANGES).map(({ from: first, to: last, calls }, i) => (
        <span key={first}>
          {i > 0 && ', '}
          <a href={from('request', { step: first })}>
            {calls === 1 ? numberOf(first) : `${numberOf(first)}–${numberOf(last)}`}
          </a>
        </span>
      ))}
      {ranges.length > MOST_RANGES && ` and ${counted(ranges.length - MOST_RANGES)} more`}
    </p>
  );
}

const KINDS: Readonly<Record<SearchHit['kind'], string>> = {
  message: 'message',
  toolcall: 'result of a call',
  file: 'file',
  system_prompt: 'system prompt',
};

function Hit({
  hit,
  strip,
  seen,
}: {
  readonly hit: SearchHit;
  readonly strip: Strip | undefined;
  readonly seen: boolean;
}) {
  const { kind, name, object, version, count, lines, whole, as_line: asLine, step, turn, at } = hit;
  const session = hit.session ?? place.value.of.session;
  const isOther = session !== place.value.of.session;
  const to = isOther ? { session, tx: undefined } : {};
  return (
    <li class="card">
      <div class="row">
        <strong>
          {step !== null ? (
            <a href={from('conversation', { ...to, step })}>{oneLine(pathEnd(name, 80))}</a>
          ) : (
            <a href={from('object', { ...to, id: object ?? '', ...(version === null ? {} : { b: version.number }) })}>
              {oneLine(pathEnd(name, 80))}
            </a>
          )}
        </strong>
        <span class="soft">
          {KINDS[kind]}
          {version !== null && `, version ${version.number}`}
          {turn !== null && ` · turn ${turn}`}
          {step !== null && strip !== undefined && !isOther && `, call ${counted(callNumber(strip, step))}`}
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
      <Exposure label="In full in the context at calls" ranges={whole} strip={isOther ? undefined : strip} />
      <Exposure label="As one line at calls" ranges={asLine} strip={isOther ? undefined : strip} />
      {whole.length === 0 && asLine.length === 0 && (
        <p class="exposure soft">
          {seen
            ? 'In the context of no call that was seen.'
            : 'Not recorded: the requests of this session were not seen.'}
        </p>
      )}
    </li>
  );
}

/** Searches messages and versions of one session or all, and shows the calls that saw a match. */
export function SearchView() {
  useStrip();
  const strip = useSessionStrip();
  const { session, q, all } = place.value.of;
  const isAll = all !== undefined || session === undefined;
  const answer = useQuestion<Search>(q === undefined || q === '' ? undefined : '/v1/search', {
    session: isAll ? undefined : session,
    text: q,
    order: 'first',
  });
  const there = strip.state === 'there' ? strip.value : undefined;
  const seen = there === undefined || there.calls.some(({ kind }) => kind !== 'unseen');
  return (
    <>
      <h1 class="hidden">Search</h1>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          goTo(from('search', { q: String(new FormData(event.currentTarget).get('text') ?? ''), all }));
        }}
      >
        <label>
          <span class="hidden">Text</span>
          <input
            type="search"
            name="text"
            defaultValue={q ?? ''}
            maxLength={1_000}
            placeholder="Text"
            size={40}
            key={q}
          />
        </label>
        <button type="submit" class="first">
          Search
        </button>
        {session !== undefined && (
          <label>
            <input
              type="checkbox"
              checked={isAll}
              onChange={(event) => goTo(from('search', { q, all: event.currentTarget.checked ? 1 : undefined }))}
            />{' '}
            All sessions
          </label>
        )}
      </form>
      {q !== undefined && q !== '' && (
        <AnswerBox answer={answer}>
          {({ hits, texts, chars, is_cut: isCut }) => (
            <>
              <p class="soft" role="status">
                {hits.length === 0
                  ? `Nothing has “${oneLine(q, 80)}”`
                  : `${plural(hits.length, 'text')} with “${oneLine(q, 80)}”, the first appearance first`}
                {isCut && ', and there are more'}. {plural(texts, 'text')} with {counted(chars)} characters were
                searched.
              </p>
              <ol class="plain">
                {hits.map((hit, i) => (
                  <Hit key={i} hit={hit} strip={there} seen={seen} />
                ))}
              </ol>
            </>
          )}
        </AnswerBox>
      )}
    </>
  );
}
