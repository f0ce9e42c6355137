import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, BrowserContext } from 'playwright-core';
import type { ContextClient } from '../../src/client/session/context-client.js';
import { type Serve, startServe, temporaryRoot } from '../support/mcp-clients.js';
import { expectQuiet, watchedPage } from './browser.js';
import { openBrowser } from './chromium.js';
import { DEMO_FILESYSTEM, DEMO_MOUNT, demoFork, demoSession } from './demo-session.js';
import { type Cell, differingPictures, SCHEMES, WIDTHS } from './sheet.js';

/** Pictures that a person looked at. `npm run pictures` makes them anew, to be looked at again. */
const APPROVED = join(import.meta.dirname, 'approved');
const APPROVES = process.env.PALIMPSEST_PICTURES !== undefined;
/** The smallest width and height of a control, pixels [WCAG 2.2, 2.5.8]. */
const SMALLEST = 24;

describe('every view of the review page', () => {
  let root: string;
  let remove: () => Promise<void>;
  let client: ContextClient;
  let serve: Serve;
  let origin: string;
  let browser: Browser;
  let context: BrowserContext;
  let addresses: Readonly<Record<string, string>>;

  beforeAll(async () => {
    const made = await temporaryRoot();
    ({ root, remove } = made);
    // Digits have one width, so names take the same room in every run.
    const name = `views-${String(Date.now()).slice(-7)}`;
    const demo = await demoSession(made.root, name);
    ({ client } = demo);
    const fork = await demoFork(demo);
    serve = await startServe(
      ['--share-sessions', '--mount', `${DEMO_MOUNT}=${made.root},${DEMO_FILESYSTEM}`],
      made.root,
    );
    ({ origin } = new URL(serve.url));
    browser = await openBrowser();
    context = await browser.newContext({ viewport: { width: 1_440, height: 900 } });
    const { session, file } = demo;
    addresses = {
      sessions: `?text=${name}`,
      conversation: `conversation?session=${session}`,
      context: `strip?session=${session}`,
      call: `request?session=${session}`,
      changes: `changes?session=${session}&from=19`,
      money: `money?session=${session}`,
      files: `files?session=${session}`,
      file: `object?session=${session}&id=${file}&a=1&b=2`,
      search: `search?session=${session}&q=price`,
      compare: `compare?session=${session}&with=${fork}`,
      notes: `notes?session=${session}`,
      query: `query?q=${encodeURIComponent('{:find [?tool (count ?e)] :where [[?e :tool ?tool]]}')}`,
    };
    const page = await context.newPage();
    await page.goto(`${origin}/review/#token=${serve.token}`);
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    await page.close();
  });
  afterAll(async () => {
    await browser?.close();
    await serve?.close();
    await client?.close();
    await remove?.();
  });

  test.each([
    'sessions',
    'conversation',
    'context',
    'call',
    'changes',
    'money',
    'files',
    'file',
    'search',
    'compare',
    'notes',
    'query',
  ])('%s: fits every width, is accessible in light and dark, and looks as it was approved', async (view) => {
    const watched = await watchedPage(context, origin);
    const { page } = watched;
    const cells: Cell[] = [];
    for (const scheme of SCHEMES) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(`${origin}/review/${addresses[view]}`);
        // The same letters on every machine.
        await page.evaluate(() => {
          document.documentElement.style.setProperty('--font', '"DejaVu Sans", sans-serif');
          document.documentElement.style.setProperty('--mono', '"DejaVu Sans Mono", monospace');
        });
        await watched.settled();
        await page.waitForLoadState('networkidle');
        const [overflow, small] = await page.evaluate((smallest) => {
          const controls = [...document.querySelectorAll('button, input, select, summary, .button, nav a')];
          const tooSmall = controls.filter((control) => {
            const { width: w, height: h } = control.getBoundingClientRect();
            const isCheckbox = control.matches('input[type=checkbox]');
            return w > 0 && h > 0 && !isCheckbox && (w < smallest || h < smallest);
          });
          return [
            document.documentElement.scrollWidth - innerWidth,
            tooSmall.map((one) => one.outerHTML.slice(0, 120)),
          ];
        }, SMALLEST);
        expect([width, scheme, overflow, small]).toEqual([width, scheme, 0, []]);
        expect(await page.locator('[role=alert]').allTextContents()).toEqual([]);
        expect([width, scheme, await watched.barriers()]).toEqual([width, scheme, []]);
        cells.push({ width, scheme, png: await page.screenshot({ animations: 'disabled', caret: 'hide' }) });
      }
    }
    expectQuiet(watched);
    expect(await differingPictures(page, { file: join(APPROVED, `${view}.webp`), cells, approves: APPROVES })).toEqual(
      [],
    );
    await page.close();
  });

  test('sharing: shows what a redacted page masks, and downloads the page without it', async () => {
    const watched = await watchedPage(context, origin);
    const { page } = watched;
    await page.setViewportSize({ width: 1_440, height: 900 });
    await page.goto(`${origin}/review/${addresses.notes}`);
    await watched.settled();
    const share = page.getByRole('region', { name: 'Without secrets' });
    const command = share.locator('code.command');
    expect(await command.innerText()).toMatch(/^palimpsest export \S+ --html \S+ --redact --data /);
    await share.getByRole('textbox').fill('item.price');
    // The page never shows a command that masks less than the typed texts.
    expect(await command.count()).toBe(0);
    await share.getByRole('button', { name: 'Show what is masked' }).click();
    await share.locator('mark').first().waitFor();
    expect(new Set(await share.locator('mark').allTextContents())).toEqual(new Set(['item.price']));
    expect(await command.innerText()).toMatch(
      /^printf '%s\\n' item\.price \| palimpsest export \S+ --html \S+ --redact \/dev\/stdin --data /,
    );
    const shownAt = async (file: string, wanted: string): Promise<string> => {
      const own = await browser.newContext({ offline: true });
      const opened = await own.newPage();
      await opened.goto(`${pathToFileURL(file).href}#/search?q=${wanted}`);
      const told = await opened.getByRole('status').filter({ hasText: wanted }).innerText();
      await own.close();
      return told;
    };
    for (const [region, found] of [
      ['Without secrets', /^No text contains/],
      ['Share', /^\d+ texts? with/],
    ] as const) {
      const saved = async (kind: string): Promise<string> => {
        const buttons = page
          .getByRole('region', { name: region })
          .getByRole('button', { name: `Download the ${kind}` });
        const [download] = await Promise.all([page.waitForEvent('download'), buttons.first().click()]);
        const file = join(root, `${region.toLowerCase().replace(' ', '-')}-${kind}.html`);
        await download.saveAs(file);
        return file;
      };
      expect(await shownAt(await saved('page'), 'item.price')).toMatch(found);
      const bundle = gunzipSync(await readFile(await saved('bundle'))).toString();
      expect([region, bundle.includes('item.price')]).toEqual([region, region === 'Share']);
    }
    expectQuiet(watched);
    await page.close();
  });
});
