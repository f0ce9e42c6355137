import { AnswerBox } from '../answer-box.js';
import { useAnswer } from '../ask.js';
import { chosenStep, useStrip } from '../calls.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import { Runs } from '../text-view.js';
import type { Search, SearchHit } from '../wire.js';
import { counted, shortTime } from '../words.js';

type Ranges = SearchHit['whole'];

const isIn = (ranges: Ranges, step: number): boolean =>
  ranges.some(({ from: first, to: last }) => step >= first && step <= last);

function stateAt({ whole, as_line: asLine }: SearchHit, step: number): string {
  return isIn(whole, step) ? 'whole' : isIn(asLine, step) ? 'as a line' : 'no';
}

function Exposure({ told, ranges }: { readonly told: string; readonly ranges: Ranges }) {
  if (ranges.length === 0) return null;
  return (
    <p class="exposure">
      {told}{' '}
      {ranges.slice(0, 12).map(({ from: first, to: last, calls }, i) => (
        <span key={first}>
          {i > 0 && ', '}
          <a href={from('request', { step: first })}>{first === last ? `step ${first}` : `steps ${first}–${last}`}</a> (
          {counted(calls)} {calls === 1 ? 'call' : 'calls'})
        </span>
      ))}
      {ranges.length > 12 && ` and ${counted(ranges.length - 12)} more`}
    </p>
  );
}

function Hit({
  hit,
  step,
  seen,
}: {
  readonly hit: SearchHit;
  readonly step: number | undefined;
  readonly seen: boolean;
}) {
  const { kind, name, object, version, count, lines, whole, as_line: asLine } = hit;
  return (
    <li class="hit">
      <h2>
        {object === null ? oneLine(name) : <a href={from('object', { id: object })}>{oneLine(name)}</a>}{' '}
        <small>
          {kind === 'message'
            ? 'message'
            : kind === 'file' && version !== null
              ? `version ${version.number}, true from ${shortTime(version.valid_time)}`
              : kind === 'system_prompt'
                ? 'prompt'
                : 'call'}
          {hit.step !== null && `, turn ${hit.turn ?? '?'}, step ${hit.step}`} · {counted(count)}{' '}
          {count === 1 ? 'place' : 'places'}
          {step !== undefined && seen && ` · in the context at step ${step}: ${stateAt(hit, step)}`}
        </small>
      </h2>
      {lines.map(({ line, excerpt }) => (
        <div class="text-row" key={line}>
          <span class="gutter">{line}</span>
          <Runs text={excerpt} />
        </div>
      ))}
      <Exposure told="Stood whole in the context at" ranges={whole} />
      <Exposure told="Its object was a line at" ranges={asLine} />
      {whole.length === 0 && asLine.length === 0 && (
        <p class="exposure">
          {seen ? 'Stood in no context that was seen.' : "Palimpsest did not see the model's requests."}
        </p>
      )}
    </li>
  );
}

/**
 * Searches all messages and versions of a session, and shows the contexts that contained each
 * match.
 */
export function SearchView() {
  const strip = useStrip();
  const { session, tx, q } = place.value.of;
  const answer = useAnswer<Search>(session === undefined || q === undefined || q === '' ? undefined : '/v1/search', {
    session,
    tx,
    text: q,
  });
  const step = strip.state === 'there' ? chosenStep(strip.value) : undefined;
  const seen = strip.state !== 'there' || strip.value.calls.some(({ kind }) => kind !== 'unseen');
  return (
    <>
      <h1>Search</h1>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          refine({ q: String(new FormData(event.currentTarget).get('q') ?? '') }, {});
        }}
      >
        <label>
          Text <input type="search" name="q" defaultValue={q ?? ''} maxLength={1_000} />
        </label>
        <button type="submit">Search</button>
      </form>
      {q !== undefined && q !== '' && (
        <AnswerBox answer={answer}>
          {({ hits, texts, chars, is_cut: isCut }) => (
            <>
              <p class="note" role="status">
                {counted(hits.length)} texts hold it; {counted(texts)} texts with {counted(chars)} characters were
                looked through
                {isCut && ', and there are more'}.
              </p>
              <ol class="hits">
                {hits.map((hit, i) => (
                  <Hit key={i} hit={hit} step={step} seen={seen} />
                ))}
              </ol>
            </>
          )}
        </AnswerBox>
      )}
    </>
  );
}
