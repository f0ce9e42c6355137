import { signal } from '@preact/signals';
import type { Token, Tokens } from 'marked';
import type { ComponentChildren } from 'preact';
import { oneLine } from './shown-text.js';
import { Runs } from './text-view.js';

/** Maximum depth of nested parts. Deeper parts are shown as plain source text. */
const MOST_DEPTH = 12;

type Read = (text: string) => readonly Token[];

/** The Markdown parser. Undefined until the library has loaded, which the first message starts. */
const reader = signal<Read | undefined>(undefined);
let isAsked = false;

function load(): void {
  if (isAsked) return;
  isAsked = true;
  void import('marked').then(({ Lexer }) => {
    reader.value = (text) => Lexer.lex(text, { gfm: true });
  });
}

function tokensOf(text: string): readonly Token[] | undefined {
  try {
    return reader.value?.(text);
  } catch {
    // A text that the library cannot parse is shown as plain source text.
    return undefined;
  }
}

function shownAll(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token, i) => <Shown key={i} token={token} depth={depth + 1} />);
}

function Table({ table, depth }: { readonly table: Tokens.Table; readonly depth: number }) {
  return (
    <div class="wide">
      <table class="bare">
        <thead>
          <tr>
            {table.header.map((cell, i) => (
              <th key={i}>{shownAll(cell.tokens, depth)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j}>{shownAll(cell.tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function List({ list, depth }: { readonly list: Tokens.List; readonly depth: number }) {
  const items = list.items.map((item, i) => (
    <li key={i}>
      {item.task && (item.checked === true ? '☑ ' : '☐ ')}
      {shownAll(item.tokens, depth)}
    </li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

/**
 * Shows one part of a Markdown text. Recorded text never becomes HTML. Links and pictures appear as
 * text with their address; pictures are not loaded.
 */
function Shown({ token, depth }: { readonly token: Token; readonly depth: number }): ComponentChildren {
  const as = token as Tokens.Generic;
  const inner = (): ComponentChildren =>
    as.tokens === undefined ? <Runs text={as.text ?? as.raw} /> : shownAll(as.tokens, depth);
  if (depth > MOST_DEPTH) return <Runs text={as.raw} />;
  switch (as.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading':
      return <p class="md-head">{inner()}</p>;
    case 'paragraph':
      return <p>{inner()}</p>;
    case 'blockquote':
      return <blockquote>{inner()}</blockquote>;
    case 'code':
      return (
        <pre>
          <Runs text={as.text} />
        </pre>
      );
    case 'codespan':
      return (
        <code>
          <Runs text={as.text} />
        </code>
      );
    case 'strong':
      return <strong>{inner()}</strong>;
    case 'em':
      return <em>{inner()}</em>;
    case 'del':
      return <del>{inner()}</del>;
    case 'br':
      return <br />;
    case 'hr':
      return <hr />;
    case 'list':
      return <List list={as as Tokens.List} depth={depth} />;
    case 'table':
      return <Table table={as as Tokens.Table} depth={depth} />;
    case 'link':
    case 'image': {
      const isBare = as.text === as.href || `mailto:${as.text}` === as.href;
      return isBare ? (
        <Runs text={as.text} />
      ) : (
        <span class="md-link" title={oneLine(as.href, 500)}>
          {as.type === 'image' ? <Runs text={as.text} /> : inner()}
          <span class="hidden"> ({oneLine(as.href, 500)})</span>
        </span>
      );
    }
    case 'text':
    case 'escape':
      return inner();
    default:
      return <Runs text={as.raw} />;
  }
}

/** Shows Markdown with its structure. Until the library has loaded, shows plain source text. */
export function Markdown({ text }: { readonly text: string }) {
  load();
  const tokens = tokensOf(text);
  if (tokens === undefined)
    return (
      <p>
        <Runs text={text.replace(/^\n+|\s+$/g, '')} />
      </p>
    );
  return <>{shownAll(tokens, 0)}</>;
}
