import { useState } from 'preact/hooks';
import { Runs } from './text-view.js';

/** Maximum characters and lines of a message until the reader asks for all of it. */
const MOST_CHARS = 2_400;
const MOST_LINES = 24;

/** Returns the beginning of a text, within both limits. */
function beginning(text: string, most: number): string {
  const lines = text.split('\n');
  return lines.slice(0, most).join('\n').slice(0, MOST_CHARS).toWellFormed();
}

const FENCE = /^```[^\n]*\n([\s\S]*?)^```[ \t]*$/gm;

/** Shows a message with its paragraphs and its fenced code; everything stays text. */
export function Prose({ text, lines = MOST_LINES }: { readonly text: string; readonly lines?: number | undefined }) {
  const [isWhole, setWhole] = useState(false);
  const start = beginning(text, lines);
  const shown = isWhole || start.length >= text.length ? text : start;
  const parts: { readonly text: string; readonly isCode: boolean }[] = [];
  let at = 0;
  for (const match of shown.matchAll(FENCE)) {
    parts.push({ text: shown.slice(at, match.index), isCode: false }, { text: match[1] ?? '', isCode: true });
    at = match.index + match[0].length;
  }
  parts.push({ text: shown.slice(at), isCode: false });
  return (
    <div class="prose">
      {parts
        .filter((part) => part.text.trim() !== '')
        .map((part, i) =>
          part.isCode ? (
            <pre key={i}>
              <Runs text={part.text.replace(/\n$/, '')} />
            </pre>
          ) : (
            <div key={i}>
              <Runs text={part.text.replace(/^\n+|\s+$/g, '')} />
            </div>
          ),
        )}
      {shown.length < text.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString('en-US')} characters
        </button>
      )}
    </div>
  );
}
