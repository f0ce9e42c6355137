import { useState } from 'preact/hooks';
import { act, actionPath } from '../act.js';
import { AnswerBox } from '../answer-box.js';
import { useAnswer } from '../ask.js';
import { askedStep, useStrip } from '../calls.js';
import { from, place } from '../place.js';
import { oneLine } from '../shown-text.js';
import { StepByStep } from '../step-by-step.js';
import type { FilesCopied, RestorePlan } from '../wire.js';
import { counted, shortId } from '../words.js';

const STATES: Readonly<Record<RestorePlan['files'][number]['state'], string>> = {
  same: 'as the agent had it',
  changed: 'another version',
  'newer-outside': 'changed outside of what is recorded',
  missing: 'gone',
  'absent-then': 'had been deleted then',
  'never-read': 'never read',
  'not-kept': 'only its hash was kept',
  'outside-roots': 'outside of the allowed folders',
  unreachable: 'cannot be reached',
  'not-regular': 'no regular file any more',
};

/** Quotes a text for a shell. */
const quoted = (text: string): string =>
  /^[A-Za-z0-9_@:./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

function CopyTo({ plan }: { readonly plan: RestorePlan }) {
  const [to, setTo] = useState(`${plan.session}-step-${plan.step}`);
  const { session, step } = plan;
  return (
    <p>
      <label>
        Write them as the agent had them into the new folder{' '}
        <input value={to} onInput={(event) => setTo(event.currentTarget.value)} />
      </label>{' '}
      <StepByStep<number, FilesCopied>
        key={to}
        label="write"
        name="write the files into a new folder"
        ask={() => Promise.resolve(plan.files.filter(({ had }) => had !== null).length)}
        run={(files) =>
          files === 0 ? undefined : () => act<FilesCopied>(actionPath(session, 'restore'), { at: `step:${step}`, to })
        }
        tell={(files) =>
          files === 0
            ? 'The agent had no file then.'
            : `${counted(files)} files; nothing that is there already is written over.`
        }
        tellDone={({ folder, written, not_kept: left }) => (
          <>
            {counted(written.length)} files in <code>{oneLine(folder, 200)}</code>
            {left.length > 0 && `; of ${counted(left.length)} only the hash was kept`}.
          </>
        )}
      />
    </p>
  );
}

/** Shows a session's files as its agent had them at a call, beside those on disk. */
export function FilesView() {
  useStrip();
  const { session } = place.value.of;
  const step = askedStep();
  const at = step === undefined ? undefined : `step:${step}`;
  const answer = useAnswer<RestorePlan>(session === undefined ? undefined : '/v1/restore', { session, at });
  return (
    <>
      <h1>Files then and now</h1>
      <AnswerBox answer={answer}>
        {(plan) => {
          const command = `palimpsest restore ${quoted(`${plan.session}@step:${plan.step}`)} --apply --in-place`;
          return (
            <>
              <p>
                As the agent had them at turn {plan.turn}, step {plan.step}:{' '}
                {Object.entries(plan.counts)
                  .map(([state, count]) => `${counted(count)} ${STATES[state as keyof typeof STATES] ?? state}`)
                  .join(', ') || 'no files'}
                .
              </p>
              <table>
                <thead>
                  <tr>
                    <th>File</th>
                    <th>On the disk</th>
                    <th>The agent had</th>
                    <th>There is</th>
                  </tr>
                </thead>
                <tbody>
                  {plan.files.map(({ id, path, state, why, had, now }) => (
                    <tr key={id} class={state === 'same' || state === 'never-read' ? '' : 'stale'}>
                      <td>
                        <a href={from('object', { id })}>{oneLine(path)}</a>
                      </td>
                      <td>
                        {STATES[state]}
                        {why !== null && ` (${oneLine(why)})`}
                      </td>
                      <td>
                        <code>{shortId(had ?? '')}</code>
                      </td>
                      <td>
                        <code>{shortId(now ?? '')}</code>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              <CopyTo plan={plan} />
              <p>
                In place, over the files themselves, by the command line alone; what is replaced is kept and can be
                given back: <code>{command}</code>{' '}
                <button
                  type="button"
                  onClick={() => void navigator.clipboard.writeText(command).catch(() => undefined)}
                >
                  Copy the command
                </button>
              </p>
              {plan.in_the_way.length > 0 && (
                <ul aria-label="In the way">
                  {plan.in_the_way.map((why) => (
                    <li key={why}>{oneLine(why, 300)}</li>
                  ))}
                </ul>
              )}
            </>
          );
        }}
      </AnswerBox>
    </>
  );
}
