import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { type Serve, startServe, temporaryRoot } from '../support/mcp-clients.js';
import { watchedPage } from './browser.js';
import { openBrowser } from './chromium.js';
import { DEMO_FILESYSTEM, DEMO_MOUNT, demoFork, demoSession } from './demo-session.js';

/** The folder for pictures. Without it the test takes no pictures. */
const PICTURES = process.env.PALIMPSEST_PICTURES;

/** The most bytes of a picture in the documentation. */
const MOST_BYTES = 60_000;

/** Converts a picture to WebP in the browser. Returns the best quality within the size limit. */
async function smaller(page: Page, png: Buffer): Promise<Buffer> {
  const made = async ([data, quality]: readonly [string, number]): Promise<string> => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext('2d')?.drawImage(image, 0, 0);
    return canvas.toDataURL('image/webp', quality).split(',')[1] ?? '';
  };
  let picture = png;
  for (const quality of [0.8, 0.65, 0.5, 0.35, 0.2]) {
    picture = Buffer.from(await page.evaluate(made, [png.toString('base64'), quality] as const), 'base64');
    if (picture.length < MOST_BYTES) break;
  }
  return picture;
}

(PICTURES === undefined ? test.skip : test)(
  'pictures of the main views, of a session that is made for them',
  async () => {
    const { root, remove } = await temporaryRoot();
    const { session, file, client } = await demoSession(root, `mend-the-cart-${Date.now().toString(36).slice(-4)}`);
    const serve: Serve = await startServe(
      ['--share-sessions', '--mount', `${DEMO_MOUNT}=${root},${DEMO_FILESYSTEM}`],
      root,
    );
    const browser = await openBrowser();
    try {
      const { origin } = new URL(serve.url);
      const context = await browser.newContext({ colorScheme: 'light', viewport: { width: 1_280, height: 800 } });
      const fork = await demoFork({ session, client });
      const views = {
        conversation: `conversation?session=${session}`,
        context: `strip?session=${session}`,
        call: `request?session=${session}`,
        changes: `changes?session=${session}&from=19`,
        file: `object?session=${session}&id=${file}&a=1&b=2`,
        compare: `compare?session=${session}&with=${fork}`,
      };
      const blank = await context.newPage();
      for (const [name, view] of Object.entries(views)) {
        const watched = await watchedPage(context, origin);
        await watched.page.goto(`${origin}/review/${view}#token=${serve.token}`);
        await watched.settled();
        await watched.page.locator('h1').waitFor();
        if (name === 'call') await watched.page.getByText('Exactly what was sent').waitFor();
        await watched.page.waitForLoadState('networkidle');
        expect(await watched.page.locator('main').innerText()).not.toContain(root);
        const picture = await smaller(blank, await watched.page.screenshot());
        expect([name, picture.length < MOST_BYTES]).toEqual([name, true]);
        await writeFile(join(PICTURES ?? '', `review-${name}.webp`), picture);
        await watched.page.close();
      }
    } finally {
      await browser.close();
      await serve.close();
      await client.close();
      await remove();
    }
  },
);
