import { useState } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import { useAnswer } from '../ask.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import type { Query } from '../wire.js';
import { plural } from '../words.js';

const EXAMPLES: readonly (readonly [string, string])[] = [
  [
    'The largest files',
    '{:find [?e ?path ?n] :where [[?e :type "file"] [?e :char_count ?n] [?e :source ?s] [(get ?s "path") ?path]] ' +
      ':order-by [[?n :desc]] :limit 20}',
  ],
  ['Calls by tool', '{:find [?tool (count ?e)] :where [[?e :tool ?tool]]}'],
  ['Calls that failed', '{:find [?e ?tool] :where [[?e :status "fail"] [?e :tool ?tool]] :limit 100}'],
  ['What is pinned', '{:find [?id ?o] :where [[?s :session_id ?id] [?s :pinned_set ?o]]}'],
  [
    'Files that equal the output of a call',
    '{:find [?a ?b] :where [[?a :type "file"] [?b :type "toolcall"] [?a :content_hash ?h] [?b :content_hash ?h]] ' +
      ':limit 100}',
  ],
];

/** Whether a value of a row names an object. */
const isObject = (value: unknown): value is string =>
  typeof value === 'string' &&
  (/^[0-9a-f]{64}$/.test(value) || /^(session|chat|system-prompt):/.test(value) || /^\S+:\d+$/.test(value));

function Cell({ value }: { readonly value: unknown }) {
  if (isObject(value)) return <a href={from('object', { id: value })}>{oneLine(value, 80)}</a>;
  return <>{oneLine(typeof value === 'string' ? value : JSON.stringify(value), 300)}</>;
}

/** Shows a Datalog console, at the transaction of the address. */
export function QueryView() {
  const { q, tx } = place.value.of;
  const [text, setText] = useState(q ?? EXAMPLES[0]?.[1] ?? '');
  const answer = useAnswer<Query>(q === undefined || q === '' ? undefined : '/v1/query', { query: q, tx });
  const run = (query: string): void => refine({ q: query }, {});
  return (
    <>
      <h1>Query</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(text);
        }}
      >
        <label>
          Datalog, as EDN
          <textarea
            name="q"
            rows={6}
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run(text);
            }}
          />
        </label>
        <button type="submit">Run</button>
      </form>
      <ul class="examples row" aria-label="Examples">
        {EXAMPLES.map(([name, query]) => (
          <li key={name}>
            <button
              type="button"
              onClick={() => {
                setText(query);
                run(query);
              }}
            >
              {name}
            </button>
          </li>
        ))}
      </ul>
      {q !== undefined && q !== '' && (
        <AnswerBox answer={answer}>
          {({ columns, rows, basis, is_cut: isCut }) => (
            <>
              <p class="note" role="status">
                {plural(rows.length, 'row')}
                {isCut && ', and there are more'}, as known after transaction {basis.tx_id ?? 'none'}
              </p>
              <section class="wide" tabIndex={0} aria-label="Rows">
                <table>
                  <thead>
                    <tr>
                      {columns.map((column, n) => (
                        <th key={column} class={typeof rows[0]?.[n] === 'number' ? 'number' : ''}>
                          {oneLine(column)}
                        </th>
                      ))}
                    </tr>
                  </thead>
                  <tbody>
                    {rows.map((row, i) => (
                      <tr key={i}>
                        {row.map((value, n) => (
                          <td key={n} class={typeof value === 'number' ? 'number' : ''}>
                            <Cell value={value} />
                          </td>
                        ))}
                      </tr>
                    ))}
                  </tbody>
                </table>
              </section>
            </>
          )}
        </AnswerBox>
      )}
    </>
  );
}
