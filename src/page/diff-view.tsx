import type { StructuredPatchHunk } from 'diff';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { Runs } from './text-view.js';
import { VirtualList } from './virtual-list.js';

/** Maximum time to compare two texts before they count as too different, milliseconds. */
const LIMIT_MS = 1_500;
const ROW_PX = 18;
const MOST_PX = 560;
/** Maximum shown length of a line in a difference; the text itself shows all of it. */
const MOST_CHARS = 2_000;

interface DiffRow {
  readonly sign: '+' | '-' | ' ' | '@';
  readonly text: string;
  readonly old?: number;
  readonly new?: number;
}

const CLASSES: Readonly<Record<DiffRow['sign'], string>> = { '+': 'added', '-': 'removed', ' ': 'same', '@': 'hunk' };

function rowsOf(hunks: readonly StructuredPatchHunk[]): readonly DiffRow[] {
  return hunks.flatMap((hunk): readonly DiffRow[] => {
    let [before, after] = [hunk.oldStart, hunk.newStart];
    const lines = hunk.lines.map((line): DiffRow => {
      const [sign, text] = [line[0], line.slice(1, MOST_CHARS)];
      if (sign === '+') return { sign, text, new: after++ };
      if (sign === '-') return { sign, text, old: before++ };
      if (sign === ' ') return { sign, text, old: before++, new: after++ };
      return { sign: '@', text: line };
    });
    return [{ sign: '@', text: `lines ${hunk.oldStart}, ${hunk.newStart}` }, ...lines];
  });
}

/**
 * Shows how one text became another, line by line. The comparison loads with the first difference.
 */
export function DiffView({
  before,
  after,
  label,
}: {
  readonly before: string;
  readonly after: string;
  readonly label: string;
}) {
  const [hunks, setHunks] = useState<readonly StructuredPatchHunk[] | 'too different'>();
  useEffect(() => {
    let isWanted = true;
    setHunks(undefined);
    void import('diff').then(({ structuredPatch }) => {
      const patch = structuredPatch('', '', before, after, '', '', { context: 3, timeout: LIMIT_MS });
      if (isWanted) setHunks(patch?.hunks ?? 'too different');
    });
    return () => {
      isWanted = false;
    };
  }, [before, after]);
  const rows = useMemo(() => (hunks === undefined || hunks === 'too different' ? [] : rowsOf(hunks)), [hunks]);
  if (hunks === undefined) return <p class="note">Comparing…</p>;
  if (hunks === 'too different') return <p class="note">Too different to be compared line by line.</p>;
  if (rows.length === 0) return <p class="note">The texts are equal.</p>;
  const row = (i: number) => {
    const { sign, text, old, new: fresh } = rows[i] ?? { sign: ' ' as const, text: '' };
    return (
      <div class={`text-row ${CLASSES[sign]}`}>
        <span class="gutter" aria-hidden="true">
          {old ?? ''}
        </span>
        <span class="gutter" aria-hidden="true">
          {fresh ?? ''}
        </span>
        <span class="sign">{sign === '@' ? '' : sign}</span>
        <Runs text={text} />
      </div>
    );
  };
  return (
    <div class="text diff">
      <VirtualList label={label} count={rows.length} rowHeight={ROW_PX} height={MOST_PX} row={row} />
    </div>
  );
}
