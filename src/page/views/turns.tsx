import { AnswerBox } from '../answer-box.js';
import { useAnswer } from '../ask.js';
import { keptWhileFollowed, knownTx } from '../calls.js';
import { UndoAnyStep, UndoStep } from '../person.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import { TextView } from '../text-view.js';
import type { Log, LoggedTurn } from '../wire.js';
import { counted, shortId, shortTime } from '../words.js';

const LISTED = 20;

function Turn({ turn }: { readonly turn: LoggedTurn }) {
  const {
    turn: number,
    from: began,
    opened_by: rule,
    messages,
    calls,
    epochs,
    first_step: first,
    last_step: last,
  } = turn;
  const entries = [
    ...messages.map((message) => ({
      step: message.step,
      shown: (
        <details open>
          <summary>
            {message.step} {oneLine(message.role)}
          </summary>
          <TextView text={message.text} label={`Message of step ${message.step}`} />
        </details>
      ),
    })),
    ...calls.map((call) => ({
      step: call.step,
      shown: (
        <p class="call">
          {call.step} <a href={from('object', { id: call.id, step: call.step })}>{oneLine(call.tool)}</a>{' '}
          <code>{oneLine(call.args)}</code> {call.status === 'fail' && <span class="bad">failed</span>}{' '}
          {counted(call.chars)} characters
        </p>
      ),
    })),
    ...epochs.map((epoch) => ({
      step: epoch.step,
      shown: (
        <p class="epoch">
          Epoch {epoch.number} began: {epoch.reason}
          {epoch.price !== null &&
            `; ${counted(epoch.price.written)} tokens written again, ${counted(epoch.price.saved_per_call)} ` +
              'saved a call'}
        </p>
      ),
    })),
    ...turn.person.map(({ step, undoes, changes }) => ({
      step,
      shown: (
        <p class="person">
          {step} <span class="actor actor-person">person</span> {undoes !== null && `took back step ${undoes}: `}
          {(Object.entries(changes) as [string, readonly string[]][])
            .filter(([, ids]) => ids.length > 0)
            .map(([verb, ids]) => (
              <span key={verb}>
                {verb}{' '}
                {ids.map((id) => (
                  <a key={id} href={from('object', { id, step })}>
                    {oneLine(shortId(id), 60)}
                  </a>
                ))}{' '}
              </span>
            ))}
          <UndoStep step={step} />
        </p>
      ),
    })),
  ].sort((a, b) => a.step - b.step);
  return (
    <section class="turn" aria-label={`Turn ${number}`}>
      <h2>
        Turn {number} <small>{`${shortTime(began)}, steps ${first}–${last}${rule === null ? '' : `, ${rule}`}`}</small>
      </h2>
      {entries.map(({ step, shown }, i) => (
        <div key={`${step}-${i}`}>{shown}</div>
      ))}
    </section>
  );
}

/** Shows messages and calls turn by turn, newest first. */
export function TurnsView() {
  const { session, limit = LISTED } = place.value.of;
  const answer = useAnswer<Log>(
    session === undefined ? undefined : '/v1/log',
    { session, tx: knownTx(), limit },
    keptWhileFollowed(),
  );
  return (
    <>
      <h1>Turns</h1>
      <AnswerBox answer={answer}>
        {({ turns }) => (
          <>
            {turns?.[0] !== undefined && (
              <p class="filters">
                <UndoAnyStep last={turns[0].last_step} />
              </p>
            )}
            {(turns ?? []).map((turn) => (
              <Turn key={turn.turn} turn={turn} />
            ))}
            {(turns ?? []).length >= Number(limit) && (
              <button type="button" onClick={() => refine({ limit: Number(limit) * 2 })}>
                Earlier turns
              </button>
            )}
          </>
        )}
      </AnswerBox>
    </>
  );
}
