import { useEffect, useMemo, useState } from 'preact/hooks';
import type { ViewName } from './address.js';
import { type Answered, answers, isServed, type Parameters as QuestionParameters, useAnswer } from './ask.js';
import { type CountedTexts, countedTexts } from './counted-texts.js';
import { followed } from './follow.js';
import { place, refine } from './place.js';
import { columnOf, makerOf, neighbour } from './strip-layout.js';
import type { RequestView, Strip, StripCall } from './wire.js';
import { nameBelow } from './words.js';

/** Returns the current strip of the address's session, if the page follows it. */
function liveStrip(): Strip | undefined {
  const { session, live } = place.value.of;
  return live !== undefined && followed.value?.session === session ? followed.value?.strip : undefined;
}

/**
 * Returns the transaction for a view's questions: that of the address, or that of a followed
 * session's last event.
 */
export function knownTx(): string | undefined {
  const { tx } = place.value.of;
  const known = tx ?? liveStrip()?.basis.tx_id;
  return known === undefined || known === null ? undefined : String(known);
}

/**
 * Asks a question at the transaction of the address, so that its answer never changes. Waits until
 * the transaction is known. A followed session's answers stay on screen until the next ones load.
 */
export function useQuestion<T>(path: string | undefined, parameters: QuestionParameters = {}): Answered<T> {
  const { session, live } = place.value.of;
  const tx = knownTx();
  const isReady = tx !== undefined || session === undefined || !isServed();
  return useAnswer<T>(isReady ? path : undefined, { ...parameters, tx }, live === undefined ? {} : { keeps: session });
}

/**
 * Returns the strip of the address's session. If the session is followed, events update the strip.
 */
export function useSessionStrip({ isAsked = true }: { readonly isAsked?: boolean } = {}): Answered<Strip> {
  const { session, tx } = place.value.of;
  const now = liveStrip();
  const answer = useAnswer<Strip>(session === undefined || now !== undefined || !isAsked ? undefined : '/v1/strip', {
    session,
    tx,
  });
  return now === undefined ? answer : { state: 'there', value: now };
}

/**
 * Returns the strip like `useSessionStrip`. Also sets the folder that file names leave out. Unless
 * the session is followed, it writes the strip's transaction to the address, so that a shared link
 * shows the same strip.
 */
export function useStrip(): Answered<Strip> {
  const answer = useSessionStrip();
  const { session, tx, live } = place.value.of;
  const strip = answer.state === 'there' && tx === undefined && live === undefined ? answer.value : undefined;
  const known = strip?.basis.tx_id;
  useMemo(() => {
    if (answer.state !== 'there') return;
    nameBelow(answer.value.bands.filter(({ type }) => type === 'file').map(({ name }) => name));
  }, [answer.state === 'there' ? answer.value.bands : undefined]);
  useEffect(() => {
    if (known === undefined || known === null) return;
    // The new address asks for this same strip, so no request is needed.
    answers('/v1/strip', { session, tx: String(known) }, strip);
    refine({ tx: known });
  }, [known]);
  return answer;
}

/**
 * Minimum time in milliseconds that a call is chosen before its texts are counted. So the calls
 * that a held key passes are not counted.
 */
const CHOSEN_MS = 150;

function useLasting<T>(value: T): T | undefined {
  const [lasting, setLasting] = useState<T>();
  useEffect(() => {
    const timer = setTimeout(() => setLasting(value), CHOSEN_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return lasting === value ? value : undefined;
}

/**
 * Counts the texts of a call's request. Undefined until they are counted, and for an unseen
 * request. Also undefined while the page follows the session, because every step would cost a
 * count.
 */
export function useCountedTexts(call: StripCall | undefined): CountedTexts | undefined {
  const { session, live } = place.value.of;
  const step = useLasting(call === undefined || call.kind === 'unseen' ? undefined : call.step);
  const isAsked = step !== undefined && session !== undefined && live === undefined;
  const answer = useQuestion<RequestView>(isAsked ? '/v1/request' : undefined, { session, at: `step:${step ?? 0}` });
  const view = isAsked && answer.state === 'there' && answer.value.request !== null ? answer.value : undefined;
  return useMemo(() => (view === undefined ? undefined : countedTexts(view)), [view]);
}

/** Returns the number, from 1, of the last model call whose request ends at or before a step. */
export const callNumber = ({ calls }: Strip, step: number): number => Math.max(1, columnOf(calls, step + 1));

/**
 * Returns the step for a link from one view to another. In the conversation, the step is one that a
 * model call made. In other views, it is the step at which the request of a call ends.
 */
export function stepFor(view: ViewName, strip: Strip | undefined): string | number | undefined {
  const { view: here, of } = place.value;
  if (of.step === undefined || strip === undefined || (view === 'conversation') === (here === 'conversation'))
    return of.step;
  if (view === 'conversation') return Number(of.step) + 1;
  return strip.calls[makerOf(strip, Number(of.step)) - 1]?.step ?? of.step;
}

/** Returns the step of the model call in the address, or of the last call. */
export function chosenStep(strip: Strip): number | undefined {
  const { view, of } = place.value;
  if (of.step === undefined) return strip.calls.at(-1)?.step;
  return view === 'conversation' ? strip.calls[makerOf(strip, Number(of.step)) - 1]?.step : Number(of.step);
}

/** Chooses the call whose request ends at a step. */
export function choose(step: number, options?: Parameters<typeof refine>[1]): void {
  refine({ step: place.value.view === 'conversation' ? step + 1 : step, from: undefined }, options);
}

/**
 * Returns the step of the model call in the address, or of a followed session's newest call.
 * Undefined if neither is known.
 */
export function askedStep(): number | undefined {
  const { step } = place.value.of;
  const now = liveStrip();
  return step !== undefined ? Number(step) : now === undefined ? undefined : chosenStep(now);
}

/** Goes to another call of the strip. */
export function move(strip: Strip, to: Parameters<typeof neighbour>[2]): void {
  const step = chosenStep(strip);
  const call = step === undefined ? undefined : neighbour(strip.calls, step, to);
  if (call !== undefined) choose(call.step);
}

/** Toggles between following the session of the address and showing its current state. */
export function toggleFollowing(): void {
  const { live } = place.value.of;
  if (live === undefined) refine({ live: 1, tx: undefined });
  else refine({ live: undefined, tx: knownTx() });
}
