import { useMemo } from 'preact/hooks';
import { textRows, textRuns } from './shown-text.js';
import { VirtualList } from './virtual-list.js';

const ROW_PX = 18;
/** Maximum rows shown without a virtual list. */
const PLAIN_ROWS = 60;
const MOST_PX = 560;

/** Shows recorded text in one line of the screen, with every character visible and inert. */
export function Runs({ text }: { readonly text: string }) {
  return (
    <bdi class="runs">
      {textRuns(text).map((run, i) =>
        run.isEscape ? (
          <span key={i} class="escape">
            {run.text}
          </span>
        ) : (
          run.text
        ),
      )}
    </bdi>
  );
}

interface TextViewProps {
  readonly text: string;
  readonly label: string;
  /** Returns the link of a line number, from the line's text. */
  readonly lineHref?: (line: string) => string;
}

/**
 * Shows a recorded text with line numbers. Long texts scroll, and only visible rows are rendered.
 */
export function TextView({ text, label, lineHref }: TextViewProps) {
  const rows = useMemo(() => textRows(text), [text]);
  const row = (i: number) => {
    const { line, from, to, goesOn } = rows[i] ?? { line: 0, from: 0, to: 0, goesOn: false };
    const shown = text.slice(from, to);
    const isLink = lineHref !== undefined && !goesOn && shown.trim() !== '';
    return (
      <div class="text-row">
        {isLink ? (
          <a class="gutter" href={lineHref(shown.trim())} aria-label={`In which contexts line ${line} stood`}>
            {line}
          </a>
        ) : (
          <span class="gutter" aria-hidden="true">
            {goesOn ? '↪' : line}
          </span>
        )}
        <Runs text={shown} />
      </div>
    );
  };
  if (rows.length <= PLAIN_ROWS)
    return (
      <section class="text" tabIndex={0} aria-label={label}>
        {rows.map((_, i) => (
          <div key={i}>{row(i)}</div>
        ))}
      </section>
    );
  return (
    <div class="text">
      <VirtualList label={label} count={rows.length} rowHeight={ROW_PX} height={MOST_PX} row={row} />
    </div>
  );
}
