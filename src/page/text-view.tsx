import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { type MarkedPart, textRows, textRuns } from './shown-text.js';
import { VirtualList } from './virtual-list.js';

const ROW_PX = 20;
const LIMITS = { plain: 300, height: 560 };
/** Time in milliseconds until a button offers to copy again. */
const COPIED_MS = 1_500;

function Plain({ text }: { readonly text: string }) {
  return (
    <>
      {textRuns(text).map((run, i) =>
        run.isEscape ? (
          <span key={i} class="escape">
            {run.text}
          </span>
        ) : (
          run.text
        ),
      )}
    </>
  );
}

/** Shows recorded text in one line, with every character visible and inert, and parts marked. */
export function Runs({ text, marks = [] }: { readonly text: string; readonly marks?: readonly MarkedPart[] }) {
  let at = 0;
  const parts: ComponentChildren[] = [];
  for (const { from, to } of marks) {
    parts.push(<Plain key={at} text={text.slice(at, from)} />);
    parts.push(
      <mark key={`m${from}`}>
        <Plain text={text.slice(from, to)} />
      </mark>,
    );
    at = to;
  }
  return (
    <bdi class="runs">
      {parts}
      <Plain text={text.slice(at)} />
    </bdi>
  );
}

/** Copies exact text, and then shows that it did. */
export function CopyButton({ text, label = 'Copy' }: { readonly text: () => string; readonly label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <button type="button" class="quiet" onClick={() => void copy().catch(() => undefined)}>
      {isCopied ? 'Copied' : label}
    </button>
  );
}

/** Saves bytes as a file of this name. */
export function saveAs(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name.replaceAll(/[^\w.-]+/g, '-').slice(-80) || 'text.txt';
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Saves exact text as a file. */
function DownloadButton({ text, name }: { readonly text: () => string; readonly name: string }) {
  return (
    <button type="button" class="quiet" onClick={() => saveAs(new Blob([text()], { type: 'text/plain' }), name)}>
      Download
    </button>
  );
}

/** Returns the offset of a selection's end in the text of its row. Undefined outside of a row. */
function placeIn(node: Node, offset: number): number | undefined {
  const element = node instanceof Element ? node : node.parentElement;
  const row = element?.closest<HTMLElement>('[data-from]');
  if (row === null || row === undefined) return undefined;
  const [from, to] = [Number(row.dataset.from), Number(row.dataset.to)];
  const runs = row.querySelector('.runs');
  if (runs === null || !runs.contains(node)) return from;
  // A code takes more characters than the character that it stands for.
  if (runs.querySelector('.escape') !== null) return offset === 0 ? from : to;
  const before = document.createRange();
  before.setStart(runs, 0);
  before.setEnd(node, offset);
  return Math.min(to, from + before.toString().length);
}

/**
 * Copies the selected part of a text exactly: without the line breaks of the screen, and with every
 * blank line.
 */
function copyRange(event: ClipboardEvent, text: string): void {
  const selection = getSelection();
  if (selection === null || selection.rangeCount === 0 || selection.isCollapsed) return;
  const { startContainer, startOffset, endContainer, endOffset } = selection.getRangeAt(0);
  const [from, to] = [placeIn(startContainer, startOffset), placeIn(endContainer, endOffset)];
  if (from === undefined || to === undefined || from >= to) return;
  event.clipboardData?.setData('text/plain', text.slice(from, to));
  event.preventDefault();
}

interface TextRowsProps {
  readonly label: string;
  readonly count: number;
  /** Above `plain` rows, the text is a virtual list of `height` pixels. */
  readonly limits: { readonly plain: number; readonly height: number };
  readonly row: (index: number) => ComponentChildren;
}

/** Shows the rows of a text. Of long texts only visible rows are rendered. */
export function TextRows({ label, count, limits, row }: TextRowsProps) {
  if (count > limits.plain)
    return <VirtualList label={label} count={count} rowHeight={ROW_PX} height={limits.height} row={row} />;
  return (
    <section class="text-rows" tabIndex={0} aria-label={label}>
      {Array.from({ length: count }, (_, i) => (
        <div key={i}>{row(i)}</div>
      ))}
    </section>
  );
}

interface TextViewProps {
  readonly text: string;
  readonly label: string;
  /** Shown above the text, instead of the label. */
  readonly title?: ComponentChildren;
  /** The name of a downloaded file; without one, the label. */
  readonly file?: string | undefined;
  /** The number of the first line. */
  readonly firstLine?: number;
  /** Returns the link of a line number, from the line's text. */
  readonly lineHref?: (line: string) => string;
}

/**
 * Shows a recorded text with line numbers. The text can be copied and downloaded unchanged. Of long
 * texts only visible rows are rendered.
 */
export function TextView({ text, label, title, file = label, firstLine = 1, lineHref }: TextViewProps) {
  const rows = useMemo(() => textRows(text), [text]);
  const row = (i: number) => {
    const { line, from, to, goesOn } = rows[i] ?? { line: 0, from: 0, to: 0, goesOn: false };
    const shown = text.slice(from, to);
    const isLink = lineHref !== undefined && !goesOn && shown.trim() !== '';
    const number = line + firstLine - 1;
    return (
      <div class="text-row" data-from={from} data-to={to}>
        {isLink ? (
          <a class="gutter" href={lineHref(shown.trim())} aria-label={`Calls that saw line ${number}`}>
            {number}
          </a>
        ) : (
          <span class="gutter" aria-hidden="true">
            {goesOn ? '↪' : number}
          </span>
        )}
        <Runs text={shown} />
      </div>
    );
  };
  return (
    <div class="text" onCopy={(event) => copyRange(event, text)}>
      <div class="text-bar">
        <span>{title ?? label}</span>
        {text.includes('\r\n') && (
          <span class="chip" title="Its lines end with CR and LF">
            CRLF
          </span>
        )}
        <span class="spread" />
        <CopyButton text={() => text} />
        <DownloadButton text={() => text} name={file} />
      </div>
      <TextRows label={label} count={rows.length} limits={LIMITS} row={row} />
    </div>
  );
}
