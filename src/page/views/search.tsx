import { useState } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import { useQuestion, useSessionStrip, useStrip } from '../calls.js';
import { from, goTo, place } from '../place.js';
import { oneLine } from '../shown-text.js';
import type { Search, Strip } from '../wire.js';
import { counted, pathEnd, plural } from '../words.js';
import { SearchHits } from './search-hits.js';

const MOST_NAMED = 8;

/** Lists the files and calls whose name has the text. */
function Named({ strip, text }: { readonly strip: Strip; readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const named = strip.bands.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  if (named.length === 0) return null;
  return (
    <section class="card" aria-label="Named so">
      <h2>
        Files and calls of this name <small>{counted(named.length)}</small>
      </h2>
      <ul class="plain">
        {named.slice(0, isWhole ? named.length : MOST_NAMED).map(({ id, type, name, failed, changes }) => (
          <li key={id}>
            {type === 'file' ? (
              <a href={from('object', { id })}>{oneLine(pathEnd(name, 80))}</a>
            ) : (
              <a href={from('conversation', { step: changes[0]?.step })}>{oneLine(name, 100)}</a>
            )}{' '}
            {failed && <span class="chip bad">✗ failed</span>}
          </li>
        ))}
      </ul>
      {named.length > MOST_NAMED && !isWhole && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          Show {counted(named.length - MOST_NAMED)} more
        </button>
      )}
    </section>
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
      {q !== undefined && q !== '' && there !== undefined && <Named key={q} strip={there} text={q} />}
      {q !== undefined && q !== '' && (
        <AnswerBox answer={answer}>
          {({ hits, texts, chars, is_cut: isCut, is_indexed: isIndexed }) => (
            <>
              <p class="soft" role="status">
                {hits.length === 0
                  ? `No text contains “${oneLine(q, 80)}”`
                  : `${plural(hits.length, 'text')} with “${oneLine(q, 80)}”, the first appearance first`}
                {isCut && ', and there are more'}.
                {!isIndexed && ` ${plural(texts, 'text')} with ${counted(chars)} characters were searched.`}
              </p>
              <SearchHits hits={hits} strip={there} />
            </>
          )}
        </AnswerBox>
      )}
    </>
  );
}
