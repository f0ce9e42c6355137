import { useState } from 'preact/hooks';
import type { EmbeddedSession } from '../embedded.js';
import { from } from '../place.js';
import { oneLine } from '../shown-text.js';
import { type Verified, verifyFile } from '../verify-file.js';
import { counted, plural } from '../words.js';
import { Said } from './notes.js';

type Check =
  | { readonly state: 'unasked' }
  | { readonly state: 'running' | 'done'; readonly found: Verified | undefined }
  | { readonly state: 'failed'; readonly why: string };

function Found({ found, isDone }: { readonly found: Verified; readonly isDone: boolean }) {
  const { done, total, blocks, contexts, transcribed, unrecorded, versions, masked, wrong } = found;
  if (!isDone)
    return (
      <>
        {counted(done)} of {counted(total)} hashed…
      </>
    );
  return (
    <>
      {wrong.length === 0
        ? '✓ Everything matches its hash. '
        : `✗ ${counted(wrong.length)} of ${counted(total)} do not match. `}
      {counted(blocks)} blocks match the manifest;{' '}
      {(contexts > 0 || transcribed === 0) && `${counted(contexts)} contexts are byte for byte as sent; `}
      {transcribed > 0 &&
        `${counted(transcribed)} contexts are as they were rebuilt, since their requests were not recorded; `}
      {counted(versions)} versions match their hashes
      {unrecorded > 0 && `; ${counted(unrecorded)} contexts have no record`}
      {masked > 0 && `; ${counted(masked)} contexts and versions have masked text and new hashes`}.
      {wrong.length > 0 && (
        <ul>
          {wrong.slice(0, 20).map((one) => (
            <li key={one}>{oneLine(one)}</li>
          ))}
        </ul>
      )}
    </>
  );
}

function Verify({ file }: { readonly file: EmbeddedSession }) {
  const [check, setCheck] = useState<Check>({ state: 'unasked' });
  const run = (): void => {
    setCheck({ state: 'running', found: undefined });
    verifyFile(file, (found) => setCheck({ state: 'running', found })).then(
      (found) => setCheck({ state: 'done', found }),
      (error: unknown) => setCheck({ state: 'failed', why: error instanceof Error ? error.message : String(error) }),
    );
  };
  const isWrong = check.state === 'failed' || (check.state === 'done' && check.found?.wrong.length !== 0);
  return (
    <section aria-label="Verification" class="verification">
      <h2>Is it what was recorded?</h2>
      <p>
        Every context and every version is hashed here, by this browser, and compared with the hash that was recorded.
        The export printed this hash of the whole file for its sender: <code class="digest">{file.sha256}</code>
      </p>
      <button type="button" onClick={run} disabled={check.state === 'running'}>
        Verify
      </button>
      {check.state !== 'unasked' && (
        <div
          class={`check ${isWrong ? 'unequal' : check.state === 'done' ? 'equal' : 'checking'}`}
          role="status"
          aria-label="Verification"
        >
          {check.state === 'failed' && `✗ ${check.why}`}
          {check.state !== 'failed' && check.found !== undefined && (
            <Found found={check.found} isDone={check.state === 'done'} />
          )}
        </div>
      )}
    </section>
  );
}

/** Shows the content of a file, its verification, and the notes on it. */
export function FileView({ file }: { readonly file: EmbeddedSession }) {
  const { session, title = '', turn, calls, objects, versions, masked } = file.manifest;
  return (
    <>
      <h1>{oneLine(title === '' ? session : title, 120)}</h1>
      <dl class="facts">
        <dt>Session</dt>
        <dd>
          <code>{oneLine(session)}</code>
        </dd>
        <dt>Up to</dt>
        <dd>
          turn {counted(turn)}, {plural(calls.length, 'call')}
        </dd>
        <dt>In this file</dt>
        <dd>
          {counted(versions)} versions of {counted(objects)} objects
        </dd>
        {masked !== null && (
          <>
            <dt>Redacted</dt>
            <dd>{counted(masked)} texts lost parts before it was written; what was masked is not in it</dd>
          </>
        )}
      </dl>
      <p class="note">
        This file needs no server and asks none. <a href={from('conversation')}>The conversation</a> begins the session.
      </p>
      <Verify file={file} />
      <Said strip={undefined} />
    </>
  );
}
