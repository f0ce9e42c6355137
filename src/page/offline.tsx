import { render } from 'preact';
import './tokens.css';
import './style.css';
import './views.css';
import { Refused } from './access.js';
import { beginAt } from './address.js';
import { answerFrom } from './ask.js';
import { EmbeddedSession } from './embedded.js';
import { Page } from './page.js';
import { followLinks } from './place.js';
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
        views={{ sessions: () => <FileView file={file} />, query: NoQuery }}
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
