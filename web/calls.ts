import { useEffect } from 'preact/hooks';
import { type Answered, useAnswer } from './ask.js';
import { place, refine } from './place.js';
import { neighbour } from './strip-layout.js';
import type { Strip } from './wire.js';

/** The strip of the session of the address. What it was read at stands in the address from then on, so that whoever is sent it sees the same. */
export function useStrip(): Answered<Strip> {
  const { session, tx } = place.value.of;
  const answer = useAnswer<Strip>(session === undefined ? undefined : '/v1/strip', { session, tx });
  const known = answer.state === 'there' && tx === undefined ? answer.value.basis.tx_id : undefined;
  useEffect(() => {
    if (known !== undefined && known !== null) refine({ tx: known });
  }, [known]);
  return answer;
}

/** The call of the address; the last one where it names none. */
export function chosenStep({ calls }: Strip): number | undefined {
  const { step } = place.value.of;
  return step === undefined ? calls.at(-1)?.step : Number(step);
}

/** Goes to another call of the strip. */
export function move(strip: Strip, to: Parameters<typeof neighbour>[2]): void {
  const step = chosenStep(strip);
  const call = step === undefined ? undefined : neighbour(strip.calls, step, to);
  if (call !== undefined) refine({ step: call.step, from: undefined });
}
