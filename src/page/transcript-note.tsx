import { NOT_TOLD, reasoningNote } from '../history/rebuild/not-told.js';
import { isServed, useAnswer } from './ask.js';
import { useSessionStrip } from './calls.js';
import type { Sessions, Strip } from './wire.js';

/**
 * Returns whether an agent continues a session with its own requests, so that only its transcript
 * is known. A fork of such a session does not count until it has its own calls. Undefined until
 * this is known.
 */
export function useForeign(strip: Strip | undefined): boolean | undefined {
  const last = strip?.calls.at(-1);
  const isTranscript = last?.kind === 'transcript';
  const listed = useAnswer<Sessions>(isTranscript && isServed() ? '/v1/sessions' : undefined);
  if (!isTranscript) return false;
  if (listed.state !== 'there') return undefined;
  const parent = listed.value.sessions.find(({ id }) => id === strip?.session)?.parent;
  return parent === undefined || last.step > parent.at;
}

/** Explains why a session of another agent offers no actions on objects. */
export function NoVerbs() {
  return (
    <p class="soft">
      This session is another agent's. It builds its own requests, so nothing can be activated or pinned for it here. A
      fork of it can be continued with Palimpsest.
    </p>
  );
}

/** Explains which parts of the requests a transcript lacks. */
export function TranscriptNote() {
  const strip = useSessionStrip();
  const texts = strip.state === 'there' ? strip.value.reasoning : 0;
  return (
    <details class="soft" role="note">
      <summary>As the agent's transcript has it, which is not all that was sent</summary>
      The transcript does not have {NOT_TOLD}. {reasoningNote(texts)} The provider counted these, too, and counts text
      with its own vocabulary.
    </details>
  );
}
