import type { RequestItem, RequestView, Strip } from './wire.js';

/**
 * Returns whether the previous request lacked a part of a request. Such a part is a message or call
 * since then, a text that became active, or a later version of a file. The first request has none.
 */
export function newParts(
  { request, previous }: Pick<RequestView, 'request' | 'previous'>,
  strip: Pick<Strip, 'bands' | 'calls'> | undefined,
): (item: Pick<RequestItem, 'form' | 'step' | 'object' | 'version'>) => boolean {
  if (request === null || previous === null) return () => false;
  const loaded = new Map(
    strip?.bands.map(({ id, changes }) => [
      id,
      changes.findLast(({ step, state }) => step <= request.step && state !== 'line' && state !== 'out')?.step ?? 0,
    ]),
  );
  const before = strip?.calls.find(({ step }) => step === previous)?.at;
  return ({ form, step, object, version }) =>
    form !== 'line' &&
    (step !== null
      ? step > previous
      : object !== null &&
        ((loaded.get(object) ?? 0) > previous ||
          (version !== null && before !== undefined && version.valid_time > before)));
}
