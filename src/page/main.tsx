import { render } from 'preact';
import './tokens.css';
import './style.css';
import './views.css';
import { enter, Refused } from './access.js';
import { Page } from './page.js';
import { followLinks } from './place.js';
import { keptTheme } from './theme.js';

keptTheme();
followLinks();
const root = document.querySelector('#page');
const refused = await enter().then(
  () => undefined,
  (error: unknown) => (error instanceof Refused ? error : new Refused('unreachable', 0, 'the server does not answer')),
);
if (root !== null) render(<Page refused={refused} />, root);
