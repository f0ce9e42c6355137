import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { type DiffRow, diffRows, type Folded, foldedRows, type Hunk, hunkRows, markedRows } from './diff-rows.js';
import { CopyButton, Runs, TextRows } from './text-view.js';
import { plural } from './words.js';

/** Maximum time for comparing two texts, in milliseconds. After it, they count as too different. */
const LIMIT_MS = 1_500;
const LIMITS = { plain: 400, height: 640 };
/** Maximum shown length of a line in a difference. The view of the text shows the whole line. */
const MOST_CHARS = 2_000;
const CLASSES: Readonly<Record<DiffRow['sign'], string>> = { '+': 'added', '-': 'removed', ' ': 'same' };

interface DiffRowsProps {
  readonly all: readonly DiffRow[];
  readonly label: string;
  /** Heading above the difference: the name of the file. */
  readonly title?: ComponentChildren;
  /** The two texts to copy. Without them, the lines of the difference are copied. */
  readonly texts?: { readonly before: string; readonly after: string };
}

function DiffRows({ all, label, title, texts }: DiffRowsProps) {
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [wraps, setWraps] = useState(true);
  const rows = useMemo(() => foldedRows(all, opened), [all, opened]);
  const count = (sign: DiffRow['sign']): number => all.filter((row) => row.sign === sign).length;
  const isNumbered = all.some((one) => one.old !== undefined || one.new !== undefined);
  const row = (i: number) => {
    const shown = rows[i] as Folded;
    if ('fold' in shown)
      return (
        <button type="button" class="fold" onClick={() => setOpened(new Set([...opened, shown.fold]))}>
          Show {plural(shown.count, 'equal line')}
        </button>
      );
    const { sign, text, old, new: fresh, marks = [] } = shown;
    return (
      <div class={`text-row ${CLASSES[sign]}`}>
        {isNumbered &&
          [old, fresh].map((number, side) => (
            <span class="gutter" aria-hidden="true" key={side}>
              {number ?? ''}
            </span>
          ))}
        <span class="sign">{sign}</span>
        <Runs text={text.slice(0, MOST_CHARS)} marks={marks} />
      </div>
    );
  };
  const isLong = rows.length > LIMITS.plain;
  return (
    <div class={`text diff ${wraps ? '' : 'unwrapped'}`}>
      <div class="text-bar">
        <span>{title ?? label}</span>
        <span class="good">+{count('+')}</span>
        <span class="bad">−{count('-')}</span>
        <span class="spread" />
        {!isLong && (
          <button type="button" class="quiet" aria-pressed={wraps} onClick={() => setWraps(!wraps)}>
            Wrap
          </button>
        )}
        {texts === undefined ? (
          <CopyButton text={() => all.map(({ sign, text }) => `${sign}${text}\n`).join('')} />
        ) : (
          <>
            <CopyButton label="Copy before" text={() => texts.before} />
            <CopyButton label="Copy after" text={() => texts.after} />
          </>
        )}
      </div>
      <TextRows label={label} count={rows.length} limits={LIMITS} row={row} />
    </div>
  );
}

/** Shows the difference of two texts, with changed words marked and far equal lines folded. */
export function DiffView({
  before,
  after,
  label,
  title,
}: Omit<DiffRowsProps, 'all' | 'texts'> & { readonly before: string; readonly after: string }) {
  const [all, setAll] = useState<readonly DiffRow[] | 'too different'>();
  useEffect(() => {
    let isWanted = true;
    setAll(undefined);
    // The first difference loads the library.
    void import('diff').then(({ diffLines, diffWordsWithSpace }) => {
      const parts = diffLines(before, after, { timeout: LIMIT_MS });
      if (isWanted) setAll(parts === undefined ? 'too different' : diffRows(parts, diffWordsWithSpace));
    });
    return () => {
      isWanted = false;
    };
  }, [before, after]);
  if (all === undefined) return <p class="note">Comparing…</p>;
  if (all === 'too different') return <p class="note">Too different to compare line by line.</p>;
  if (all.every(({ sign }) => sign === ' ')) return <p class="note">The texts are equal.</p>;
  return <DiffRows all={all} label={label} title={title} texts={{ before, after }} />;
}

/** Shows a recorded difference, with its changed words. */
export function HunksView({
  hunks,
  label,
  title,
}: Omit<DiffRowsProps, 'all' | 'texts'> & { readonly hunks: readonly Hunk[] }) {
  const plain = useMemo(() => hunkRows(hunks), [hunks]);
  const [all, setAll] = useState(plain);
  useEffect(() => {
    let isWanted = true;
    void import('diff').then(({ diffWordsWithSpace }) => {
      if (isWanted) setAll(markedRows(plain, diffWordsWithSpace));
    });
    return () => {
      isWanted = false;
    };
  }, [plain]);
  return <DiffRows all={all} label={label} title={title} />;
}
