import type { Strip, StripBand, StripChange } from './wire.js';

function bandsWith(bands: readonly StripBand[], changed: readonly StripBand[]): readonly StripBand[] {
  if (changed.length === 0) return bands;
  const news = new Map(changed.map((band) => [band.id, band]));
  const known = bands.map((band) => {
    const own = news.get(band.id);
    news.delete(band.id);
    return own === undefined ? band : { ...own, changes: [...band.changes, ...own.changes] };
  });
  return [...known, ...news.values()];
}

/** Applies a change to a strip; skips parts that it already has. */
export function withChange(strip: Strip, change: StripChange): Strip {
  const { basis, last_step, calls_from: from, calls, bands, marks } = change;
  if ((basis.tx_id ?? -1) <= (strip.basis.tx_id ?? -1)) return strip;
  return {
    ...strip,
    basis,
    last_step,
    calls: [...strip.calls.filter(({ step }) => step < from), ...calls],
    bands: [...bandsWith(strip.bands, bands)],
    marks: [...strip.marks, ...marks],
  };
}

/** One event of a stream. */
export interface StreamEvent {
  readonly id: string;
  readonly name: string;
  readonly data: string;
}

/** Parses the complete events in text of a server-sent event stream, and returns the rest. */
export function eventsIn(text: string): { readonly events: readonly StreamEvent[]; readonly rest: string } {
  const blocks = text.split('\n\n');
  const rest = blocks.pop() ?? '';
  const events = blocks.flatMap((block): readonly StreamEvent[] => {
    const fields = block.split('\n').map((line): readonly [string, string] => {
      const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
      return [name, value];
    });
    const of = (name: string): readonly string[] => fields.filter(([own]) => own === name).map(([, value]) => value);
    const data = of('data').join('\n');
    return data === '' ? [] : [{ id: of('id').at(-1) ?? '', name: of('event').at(-1) ?? 'message', data }];
  });
  return { events, rest };
}
