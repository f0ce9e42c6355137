import type { CountedTexts } from './counted-texts.js';
import { CutName } from './cut-name.js';
import { from, refine } from './place.js';
import { oneLine } from './shown-text.js';
import { aboutTokens, type BandRow, stateAt } from './strip-layout.js';
import type { Strip } from './wire.js';
import { counted, pathEnd, plural, shortCount } from './words.js';

/** The label of each state of an object in the context. */
export const STATES = {
  line: 'one line only',
  active: 'in full',
  pinned: 'pinned, in full',
  part: 'in part',
  out: 'not in the context',
} as const;

/** The properties of a band. */
export interface BandProps {
  readonly row: BandRow;
  readonly strip: Strip;
  readonly chosen: number;
  /** The tokens of objects in the chosen call's request, once they are counted. */
  readonly counts: CountedTexts['byObject'] | undefined;
  readonly onHover: (row: BandRow | undefined, column: number) => void;
  /** False for a file whose text is counted in the rows of its calls. */
  readonly isSized?: boolean;
}

/** Shows one object across the model calls: when it was in the context, and how large it is. */
export function Band({ row, strip, chosen, counts, onHover, isSized = true }: BandProps) {
  const { band, spans } = row;
  const { length } = strip.calls;
  const state = stateAt(row, chosen);
  const tokens = counts?.get(band.id);
  return (
    <div class={`band ${state === undefined || state === 'line' ? 'absent' : ''}`}>
      <a class="band-name" href={from('object', { id: band.id })} title={oneLine(band.name, 300)}>
        <CutName text={oneLine(band.type === 'file' ? pathEnd(band.name) : band.name, 80)} />
      </a>
      <svg
        viewBox={`0 0 ${length} 10`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${oneLine(band.name, 80)}: ${state === undefined ? 'not in the context' : STATES[state]}`}
        onPointerMove={(event) => {
          const { left, width } = event.currentTarget.getBoundingClientRect();
          onHover(row, Math.min(length - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * length))));
        }}
        onPointerLeave={() => onHover(undefined, 0)}
        onClick={(event) => {
          const { left, width } = event.currentTarget.getBoundingClientRect();
          refine({ step: strip.calls[Math.floor(((event.clientX - left) / width) * length)]?.step });
        }}
      >
        <rect class="chosen-column" x={chosen} y={0} width={1} height={10} />
        {spans.map((span) => (
          <rect
            key={span.from}
            class={`band-${span.state}`}
            x={span.from}
            y={span.state === 'line' ? 4 : span.state === 'part' ? 3 : 1}
            width={span.to - span.from}
            height={span.state === 'line' ? 2 : span.state === 'part' ? 4 : 8}
          />
        ))}
      </svg>
      <span class="band-size">
        {isSized && (tokens === undefined ? `≈ ${shortCount(aboutTokens(band.chars))}` : counted(tokens))}
      </span>
    </div>
  );
}

/** Describes a band at a column: the name, the size, the state and its cause. */
export function bandTip(
  { row: { band, spans }, column }: { readonly row: BandRow; readonly column: number },
  { strip, chosen, counts }: Pick<BandProps, 'strip' | 'chosen' | 'counts'>,
): readonly string[] {
  const tokens = column === chosen ? counts?.get(band.id) : undefined;
  const span = spans.find((one) => one.from <= column && column < one.to);
  const call = strip.calls[column];
  const change = band.changes.findLast(({ step }) => step <= (call?.step ?? 0));
  const verb = strip.marks.find(
    ({ kind, step, object }) => kind === 'verb' && step === change?.step && object === band.id,
  );
  const how =
    verb !== undefined
      ? `${verb.tool ?? ''} by ${verb.by === null ? 'the agent' : 'a person'}`
      : span?.state === 'line'
        ? 'found, or collapsed'
        : 'read, written or run';
  return [
    oneLine(band.name, 80),
    tokens === undefined ? `≈ ${plural(aboutTokens(band.chars), 'token')}` : plural(tokens, 'token'),
    span === undefined
      ? `not in the context of call ${column + 1}`
      : `${STATES[span.state]} since call ${span.from + 1} (${how})`,
  ];
}
