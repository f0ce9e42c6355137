import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { seenRange } from './strip-layout.js';

/** A list of rows of equal height. Only visible rows are rendered. */
interface VirtualListProps {
  readonly label: string;
  readonly count: number;
  /** Height of a row in pixels. */
  readonly rowHeight: number;
  /** Maximum height of the list, in pixels. A longer list scrolls. */
  readonly height: number;
  /** A row to scroll into view. */
  readonly reveal?: number | undefined;
  readonly row: (index: number) => ComponentChildren;
}

const SPARE = 6;

/** Shows rows of equal height. Ten thousand rows cost as much as one screen of them. */
export function VirtualList({ label, count, rowHeight, height, reveal, row }: VirtualListProps) {
  const box = useRef<HTMLElement>(null);
  const [scroll, setScroll] = useState(0);
  const [window, setWindow] = useState(height);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWindow(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current;
    if (element === null || reveal === undefined) return;
    const [top, bottom] = [reveal * rowHeight, (reveal + 1) * rowHeight];
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [reveal, rowHeight]);
  const seen = seenRange(scroll, window, { each: rowHeight, count, spare: SPARE });
  const rows = [];
  for (let i = seen.from; i < seen.to; i += 1)
    rows.push(
      <div class="virtual-row" key={i} style={{ top: `${i * rowHeight}px`, height: `${rowHeight}px` }}>
        {row(i)}
      </div>,
    );
  return (
    <section
      class="virtual"
      ref={box}
      tabIndex={0}
      aria-label={label}
      style={{ maxHeight: `${height}px` }}
      onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
    >
      <div class="virtual-whole" style={{ height: `${count * rowHeight}px` }}>
        {rows}
      </div>
    </section>
  );
}
