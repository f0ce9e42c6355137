import { useState } from 'preact/hooks';
import { Markdown } from './markdown.js';

/** Maximum characters and lines of a message that are shown before the reader asks for all. */
const MOST_CHARS = 2_400;
const MOST_LINES = 24;
/** Minimum hidden characters. The button for a shorter rest would take as much room. */
const LEAST_REST = 200;

/** Returns the beginning of a text, within both limits. */
function beginning(text: string, most: number): string {
  const lines = text.split('\n');
  return lines.slice(0, most).join('\n').slice(0, MOST_CHARS).toWellFormed();
}

/** Shows the beginning of a message, or all of it. Never renders it as HTML. */
export function Prose({ text, lines = MOST_LINES }: { readonly text: string; readonly lines?: number | undefined }) {
  const [isWhole, setWhole] = useState(false);
  const start = beginning(text, lines);
  const shown = isWhole || text.length - start.length < LEAST_REST ? text : start;
  return (
    <div class="prose">
      <Markdown text={shown} />
      {shown.length < text.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString('en-US')} characters
        </button>
      )}
    </div>
  );
}
