import { render } from 'preact';
import './tokens.css';
import './style.css';
import './views.css';
import { Refused } from './access.js';
import { beginAt } from './address.js';
import { answerFrom } from './ask.js';
import { command } from './command.js';
import { EmbeddedSession } from './embedded.js';
import { Page } from './page.js';
import { followLinks } from './place.js';
import type { PageManifest } from './server/page-format.js';
import { oneLine } from './shown-text.js';
import { keptTheme } from './theme.js';
import { FileView } from './views/file.js';

/** Explains that Datalog needs a database. */
function NoQuery() {
  return (
    <>
      <h1>Query</h1>
      <p class="note">
        A query asks a database, and this file holds answers. <code>palimpsest export</code> writes the session as a
        bundle, which <code>palimpsest import</code> takes into any database: ask there.
      </p>
    </>
  );
}

/** Explains why a page in a file cannot compare sessions, and how to compare them. */
function NoCompare({ session, parents = [] }: Pick<PageManifest, 'session' | 'parents'>) {
  const parent = parents.at(-1);
  return (
    <>
      <h1>Compare</h1>
      <p>
        This file holds one session, and no call of another one, so there is nothing beside it.
        {parent !== undefined &&
          ` It is a fork of ${oneLine(parent)}. Their shared steps are here; the parent's later steps are not.`}
      </p>
      <p>
        To see two sessions side by side, ask for the bundle of each, and read both into a database. The review page of
        that database compares their contexts, costs, last answers and changed files:
      </p>
      <pre class="commands">
        {[
          command('export', session, 'one.bundle'),
          command('export', parent ?? 'OTHER', 'other.bundle'),
          command('import', 'one.bundle'),
          command('import', 'other.bundle'),
          command('review'),
        ].join('\n')}
      </pre>
    </>
  );
}

const root = document.querySelector('#page');
if (root !== null) {
  try {
    const file = await EmbeddedSession.open();
    const { session, title = '' } = file.manifest;
    answerFrom(file);
    beginAt('#/', { session });
    keptTheme();
    followLinks();
    render(
      <Page
        refused={undefined}
        views={{
          sessions: () => <FileView file={file} />,
          compare: () => <NoCompare {...file.manifest} />,
          query: NoQuery,
        }}
        names={{ sessions: 'File' }}
        sessionTitle={title === '' ? session : title}
      />,
      root,
    );
  } catch (error) {
    const told = error instanceof Refused ? error.message : String(error);
    render(
      <main class="door">
        <h1>Palimpsest</h1>
        <p role="alert">{told}</p>
      </main>,
      root,
    );
  }
}
