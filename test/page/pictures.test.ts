import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { type Serve, startServe, temporaryRoot } from '../support/mcp-clients.js';
import { watchedPage } from './browser.js';
import { openBrowser } from './chromium.js';
import { DEMO_FILESYSTEM, DEMO_MOUNT, demoSession } from './demo-session.js';

/** Where pictures are put; none are taken where it is not set. */
const PICTURES = process.env.PALIMPSEST_PICTURES;

(PICTURES === undefined ? test.skip : test)('pictures of the main views, of a session that is made for them', async () => {
  const { root, remove } = await temporaryRoot();
  const { session, file, client } = await demoSession(root, `mend-the-cart-${Date.now().toString(36).slice(-4)}`);
  const serve: Serve = await startServe(['--share-sessions', '--mount', `${DEMO_MOUNT}=${root},${DEMO_FILESYSTEM}`], root);
  const browser = await openBrowser();
  try {
    const { origin } = new URL(serve.url);
    const context = await browser.newContext({ colorScheme: 'light', viewport: { width: 1_100, height: 700 } });
    const views = {
      strip: `strip?session=${session}&live=1`,
      turns: `turns?session=${session}`,
      request: `request?session=${session}`,
      changes: `changes?session=${session}&from=19`,
      object: `object?session=${session}&id=${file}&a=1&b=2`,
      search: `search?session=${session}&q=item.count`,
    };
    for (const [name, view] of Object.entries(views)) {
      const watched = await watchedPage(context, origin);
      await watched.page.goto(`${origin}/review/${view}#token=${serve.token}`);
      await watched.settled();
      await watched.page.locator('h1').waitFor();
      if (name === 'request') await watched.page.getByText('Made again, byte for byte').waitFor();
      if (name === 'strip') await watched.page.getByText('following').waitFor();
      expect(await watched.page.locator('main').innerText()).not.toContain(root);
      await watched.page.screenshot({ path: join(PICTURES ?? '', `${name}.png`) });
      await watched.page.close();
    }
  } finally {
    await browser.close();
    await serve.close();
    await client.close();
    await remove();
  }
});
