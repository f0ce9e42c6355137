import { useEffect } from 'preact/hooks';
import { type Answered, answers, useAnswer } from './ask.js';
import { followed } from './follow.js';
import { place, refine } from './place.js';
import { neighbour } from './strip-layout.js';
import type { Strip } from './wire.js';

/** What of the session of the address is known up to now, where the page follows it. */
function liveStrip(): Strip | undefined {
  const { session, live } = place.value.of;
  return live !== undefined && followed.value?.session === session ? followed.value?.strip : undefined;
}

/** The transaction that questions of a view are asked at: that of the address, or that of the last event of the session that is followed. */
export function knownTx(): string | undefined {
  const { tx } = place.value.of;
  const known = tx ?? liveStrip()?.basis.tx_id;
  return known === undefined || known === null ? undefined : String(known);
}

/** What keeps answers of a view on the screen until the next ones are there; undefined where the session is not followed. */
export function keptWhileFollowed(): { readonly keeps?: string } {
  const { session, live } = place.value.of;
  return live === undefined || session === undefined ? {} : { keeps: session };
}

/** The strip of the session of the address: asked for, or as the events of a session that is followed bring it. */
export function useSessionStrip({ isAsked = true }: { readonly isAsked?: boolean } = {}): Answered<Strip> {
  const { session, tx } = place.value.of;
  const now = liveStrip();
  const answer = useAnswer<Strip>(session === undefined || now !== undefined || !isAsked ? undefined : '/v1/strip', {
    session,
    tx,
  });
  return now === undefined ? answer : { state: 'there', value: now };
}

/** As `useSessionStrip`. What it was read at stands in the address from then on, so that whoever is sent it sees the same, unless the session is followed. */
export function useStrip(): Answered<Strip> {
  const answer = useSessionStrip();
  const { session, tx, live } = place.value.of;
  const strip = answer.state === 'there' && tx === undefined && live === undefined ? answer.value : undefined;
  const known = strip?.basis.tx_id;
  useEffect(() => {
    if (known === undefined || known === null) return;
    // The strip at its own transaction is this one: it need not be asked for again.
    answers('/v1/strip', { session, tx: String(known) }, strip);
    refine({ tx: known });
  }, [known]);
  return answer;
}

/** The call of the address; the last one where it names none. */
export function chosenStep({ calls }: Strip): number | undefined {
  const { step } = place.value.of;
  return step === undefined ? calls.at(-1)?.step : Number(step);
}

/** The call of the address, or the newest one of a session that is followed; undefined where neither is known. */
export function askedStep(): number | undefined {
  const { step } = place.value.of;
  const now = liveStrip();
  return step !== undefined ? Number(step) : now === undefined ? undefined : chosenStep(now);
}

/** Goes to another call of the strip. */
export function move(strip: Strip, to: Parameters<typeof neighbour>[2]): void {
  const step = chosenStep(strip);
  const call = step === undefined ? undefined : neighbour(strip.calls, step, to);
  if (call !== undefined) refine({ step: call.step, from: undefined });
}

/** Follows the session of the address, or stays at what is known of it now. */
export function toggleFollowing(): void {
  const { live } = place.value.of;
  if (live === undefined) refine({ live: 1, tx: undefined });
  else refine({ live: undefined, tx: knownTx() });
}
