import { useState } from 'preact/hooks';
import { ownMember } from '../../values/own-member.js';
import { act, actionPath } from '../act.js';
import { AnswerBox } from '../answer-box.js';
import { isServed } from '../ask.js';
import { callNumber, chosenStep, useQuestion, useStrip } from '../calls.js';
import { from, place } from '../place.js';
import { Prose } from '../prose.js';
import { Share } from '../share.js';
import { oneLine } from '../shown-text.js';
import type { Notes, Strip } from '../wire.js';
import { counted, localTime } from '../words.js';

const TONES: Readonly<Record<string, string>> = { right: 'good', wrong: 'bad', unclear: 'warn' };

/** Lists the notes of reviewers. */
export function Said({ strip }: { readonly strip: Strip | undefined }) {
  const { session } = place.value.of;
  const answer = useQuestion<Notes>('/v1/notes', { session });
  return (
    <section aria-label="Notes">
      <h2>Notes</h2>
      <AnswerBox answer={answer}>
        {({ said }) =>
          said.length === 0 ? (
            <p class="soft">No reviewer has written a note.</p>
          ) : (
            <ol class="plain">
              {said.map(({ turn, step, at, object, verdict, text, by }, i) => (
                <li key={i} class="card">
                  <div class="row">
                    {verdict !== null && <span class={`chip ${ownMember(TONES, verdict) ?? ''}`}>{verdict}</span>}
                    <a href={from('conversation', { step: step + 1 })}>
                      turn {turn}, {strip === undefined ? `step ${step}` : `call ${counted(callNumber(strip, step))}`}
                    </a>
                    {object !== null && <a href={from('object', { id: object })}>its file</a>}
                    <span class="soft">
                      {by !== null && `${oneLine(by)}, `}
                      {localTime(at)}
                    </span>
                  </div>
                  {text !== null && <Prose text={text} />}
                </li>
              ))}
            </ol>
          )
        }
      </AnswerBox>
    </section>
  );
}

function Write({ strip, onWritten }: { readonly strip: Strip; readonly onWritten: () => void }) {
  const { session = '' } = place.value.of;
  const [failure, setFailure] = useState('');
  const step = chosenStep(strip);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const given = new FormData(form);
    const [text, verdict, by] = ['text', 'verdict', 'by'].map((name) => String(given.get(name) ?? '').trim());
    act(actionPath(session, 'notes'), {
      ...(step === undefined ? {} : { at: `step:${step}` }),
      ...(text === '' ? {} : { text }),
      ...(verdict === '' ? {} : { verdict }),
      ...(by === '' ? {} : { by }),
    }).then(
      () => {
        form.reset();
        setFailure('');
        onWritten();
      },
      (error: unknown) => setFailure(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <form class="card" onSubmit={onSubmit} aria-label="Write a note">
      <h2>Write a note on call {step === undefined ? '' : counted(callNumber(strip, step))}</h2>
      <textarea name="text" rows={3} aria-label="Note" />
      <div class="filters">
        <label>
          Verdict{' '}
          <select name="verdict">
            <option value="">none</option>
            <option>right</option>
            <option>wrong</option>
            <option>unclear</option>
          </select>
        </label>
        <label>
          Your name <input name="by" autocomplete="name" />
        </label>
        <button type="submit" class="first">
          Save the note
        </button>
      </div>
      {failure !== '' && (
        <p class="bad" role="alert">
          {failure}
        </p>
      )}
    </form>
  );
}

/** Shows and adds reviewers' notes, and offers to share the session. */
export function NotesView() {
  const strip = useStrip();
  const [written, setWritten] = useState(0);
  const there = strip.state === 'there' ? strip.value : undefined;
  return (
    <>
      <h1 class="hidden">Notes and sharing</h1>
      {isServed() && there !== undefined && <Write strip={there} onWritten={() => setWritten(written + 1)} />}
      <Said key={written} strip={there} />
      {isServed() && <Share />}
    </>
  );
}
