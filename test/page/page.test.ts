import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, BrowserContext } from 'playwright-core';
import { type Serve, startServe } from '../support/mcp-clients.js';
import { expectHostileTextsShown, expectQuiet, type WatchedPage, watchedPage } from './browser.js';
import { openBrowser } from './chromium.js';
import { type RecordedSession, recordedSession } from './recorded-session.js';

describe('the review page', () => {
  let made: RecordedSession;
  let serve: Serve;
  let origin: string;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    made = await recordedSession(`page${randomUUID().slice(0, 8)}`);
    serve = await startServe(['--share-sessions'], made.root);
    ({ origin } = new URL(serve.url));
    browser = await openBrowser();
    context = await browser.newContext({ colorScheme: 'dark', viewport: { width: 1_100, height: 720 } });
  });
  afterAll(async () => {
    await browser?.close();
    await serve?.close();
    await made?.close();
  });

  /** Opens a view with the token of a permitted user. */
  async function open(view: string): Promise<WatchedPage> {
    const watched = await watchedPage(context, origin);
    const separator = view.includes('#') ? '' : `#token=${serve.token}`;
    await watched.page.goto(`${origin}/review/${view}${separator}`);
    await watched.settled();
    return watched;
  }

  test('hashes the exact request in the browser and matches the hash of the one that was handed out', async () => {
    const watched = await open(`request?session=${made.session}`);
    const check = watched.page.getByRole('status', { name: 'Check' });
    await check.getByText('Exactly what was sent to the model').waitFor();
    const [recorded, remade] = await check.locator('dd code').allTextContents();
    expect([recorded?.length, recorded]).toEqual([64, remade]);
    expectQuiet(watched);
    await watched.page.close();
  });

  test('requests a strip once, and not again with its transaction in the address or by other views', async () => {
    const watched = await watchedPage(context, origin);
    const { page } = watched;
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/v1/strip')) asked.push(request.url());
    });
    await page.goto(`${origin}/review/strip?session=${made.session}#token=${serve.token}`);
    await page.waitForURL(/tx=\d+/);
    await page.waitForLoadState('networkidle');
    await page.locator('nav[aria-label=Views] a[href*="/review/request"]').click();
    await page.waitForLoadState('networkidle');
    await page.locator('nav[aria-label=Views] a[href*="/review/strip"]').click();
    await watched.settled();
    expect(asked).toHaveLength(1);
    // A reader who gets the address asks at the same transaction.
    await page.reload();
    await watched.settled();
    expect(asked).toHaveLength(2);
    expect(asked[1]).toMatch(/tx=\d+/);
    expectQuiet(watched);
    await page.close();
  });

  test('has a request and changes for every call, with hostile texts', async () => {
    const watched = await open(`strip?session=${made.session}`);
    const { page } = watched;
    const answer = await page.evaluate(async (session) => {
      const response = await fetch(`/v1/strip?session=${session}`, {
        headers: { authorization: `Bearer ${localStorage.getItem('palimpsest-secret')}` },
      });
      return ((await response.json()) as { calls: { step: number }[] }).calls;
    }, made.session);
    expect(answer).toHaveLength(made.contexts);
    for (const { step } of answer.slice(1)) {
      await page.goto(`${origin}/review/changes?session=${made.session}&step=${step}`);
      await watched.settled();
      expect(await page.locator('[role=alert]').allTextContents()).toEqual([]);
    }
    await page.goto(`${origin}/review/conversation?session=${made.session}`);
    await watched.settled();
    expect(await page.locator('main').innerText()).toContain('<script>alert(');
    await page.goto(`${origin}/review/request?session=${made.session}&step=${answer.at(-1)?.step}`);
    await watched.settled();
    await expectHostileTextsShown(watched);
    expectQuiet(watched);
    await page.close();
  });

  test('the context has the tokens that the view of the call counts, and marks all others as estimates', async () => {
    const watched = await open(`strip?session=${made.session}`);
    const { page } = watched;
    const present = page.locator('details.rows').first().locator('.band');
    await present.locator('.band-size', { hasText: /^\d/ }).first().waitFor();
    const shown = new Map(
      await present.evaluateAll((rows) =>
        rows.map((row) => [
          row
            .querySelector('a')
            ?.getAttribute('href')
            ?.match(/id=([^&]+)/)?.[1] ?? '',
          row.querySelector('.band-size')?.textContent ?? '',
        ]),
      ),
    );
    expect(shown.size).toBeGreaterThan(0);
    for (const size of await page.locator('details.rows').last().locator('.band-size').allTextContents())
      expect(size).toMatch(/^≈/);
    const step = new URL(page.url()).searchParams.get('step');
    await page.goto(`${origin}/review/request?session=${made.session}${step === null ? '' : `&step=${step}`}`);
    await watched.settled();
    const counted = new Map<string, string>();
    for (const item of await page.locator('details.item').all()) {
      await item.evaluate((element) => element.setAttribute('open', ''));
      const link = item.locator('a[href*="/review/object"]').first();
      if ((await item.locator('.chip').count()) === 0 && !(await link.isVisible())) continue;
      const id = (await link.getAttribute('href'))?.match(/id=([^&]+)/)?.[1] ?? '';
      counted.set(id, await item.locator('summary .number').innerText());
    }
    for (const [id, size] of shown) expect([id, size]).toEqual([id, counted.get(id)]);
    expectQuiet(watched);
    await page.close();
  });

  test('asks again for figures of sessions that are still being counted', async () => {
    const watched = await watchedPage(context, origin);
    const { page } = watched;
    let asked = 0;
    // Only the owner of a data folder gets figures, so the answers are those of an owner.
    const row = { id: made.session, title: 'A title', to: new Date().toISOString(), turns: 1, steps: 1, open: false };
    const none = {
      agent: null,
      model: null,
      folder: null,
      from: null,
      parent: null,
      with_sub_agents: null,
      check: null,
    };
    const figures = { calls: 77, tool_calls: 0, tokens: null, cost: null, files_changed: 0, failures: 0 };
    const basis = { valid_time: null, tx_id: null, tx_time: null };
    await page.route(/\/v1\/sessions$/, (route) => route.fulfill({ json: { sessions: [row], open: [] } }));
    await page.route(/\/v1\/list\?/, (route) => {
      asked += 1;
      const sessions = [{ ...row, ...none, figures: asked === 1 ? null : figures }];
      return route.fulfill({ json: { basis, total: 1, counted: asked - 1, prices_as_of: '', sessions } });
    });
    await page.goto(`${origin}/review/#token=${serve.token}`);
    await page.getByText('…', { exact: true }).first().waitFor();
    await page.getByRole('cell', { name: '77', exact: true }).waitFor();
    expect(asked).toBe(2);
    expectQuiet(watched);
    await page.close();
  });

  test('says that the code of a view could not be fetched, and fetches it again', async () => {
    const { page } = await watchedPage(context, origin);
    const isCode = /\/review\/assets\/notes-[^/]*\.js$/;
    await page.route(isCode, (route) => route.abort());
    await page.goto(`${origin}/review/notes?session=${made.session}#token=${serve.token}`);
    const told = page.getByRole('alert').filter({ hasText: 'The code of this view could not be fetched' });
    await told.waitFor();
    expect(await told.innerText()).toContain('palimpsest review');
    await page.unroute(isCode);
    await told.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Give it to a colleague' }).waitFor();
    await page.close();
  });

  test('names the author of a change', async () => {
    const watched = await open(`changes?session=${made.session}`);
    const { page } = watched;
    const gone = page.getByRole('region', { name: 'Collapsed to one line' });
    await gone.getByText('agent').first().waitFor();
    expect(await gone.innerText()).toMatch(/a\.ts[\s\S]*made inactive by deactivate/);
    await gone.getByRole('button').first().click();
    await page.getByText('const two = 2;').first().waitFor();
    expectQuiet(watched);
    await page.close();
  });

  test('compares two versions of a file, with their words and who made them', async () => {
    const watched = await open(`object?session=${made.session}&id=${made.file}`);
    const { page } = watched;
    await page.locator('.diff .added').getByText('const two = 2;').waitFor();
    expect(await page.locator('.diff .removed').allInnerTexts()).toEqual([expect.stringContaining('const one = 1;')]);
    await page.locator('.diff .added mark').first().waitFor();
    expect(await page.locator('.diff .added mark').allInnerTexts()).toEqual(['two', '2']);
    await page.getByRole('button', { name: 'Show version 1' }).click();
    await page
      .getByText(/a\.ts, version 1$/)
      .first()
      .waitFor();
    expectQuiet(watched);
    await page.close();
  });

  test('copies and saves the exact text, not the rows of the screen', async () => {
    const text = await readFile(join(made.root, 'src/long.txt'), 'utf8');
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
    const watched = await open(`object?session=${made.session}&id=${made.long}`);
    const { page } = watched;
    await page.getByText('long line long line').first().waitFor();
    await page.getByRole('button', { name: 'Copy', exact: true }).first().click();
    await page.getByText('Copied').waitFor();
    expect((await page.evaluate(() => navigator.clipboard.readText())) === text).toBe(true);
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).first().click(),
    ]);
    expect((await readFile(await saved.path(), 'utf8')) === text).toBe(true);
    // A selection over wrapped rows has only the line breaks of the text.
    const copied = await page.evaluate(() => {
      const runs = document.querySelectorAll('.virtual .runs');
      const range = document.createRange();
      range.setStart(runs[0]?.firstChild as Node, 5);
      range.setEnd(runs[2]?.firstChild as Node, 10);
      getSelection()?.removeAllRanges();
      getSelection()?.addRange(range);
      document.execCommand('copy');
      return navigator.clipboard.readText();
    });
    expect(copied).toBe(text.slice(5, 330));
    expectQuiet(watched);
    await page.close();
  });

  test('sends the transaction of the address with every question, so a shared address stays the same', async () => {
    const watched = await watchedPage(context, origin);
    const { page } = watched;
    const asked: string[] = [];
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.pathname.startsWith('/v1/')) asked.push(url.pathname + url.search);
    });
    for (const view of [
      'conversation',
      'strip',
      'request',
      'changes',
      'money',
      'files',
      'search',
      'notes',
      'compare',
    ]) {
      const more = view === 'search' ? '&q=two' : view === 'compare' ? `&with=${made.session}` : '';
      await page.goto(`${origin}/review/${view}?session=${made.session}${more}#token=${serve.token}`);
      await watched.settled();
      await page.waitForLoadState('networkidle');
    }
    // The newest strip determines the transaction in the address. The list is not a view of one
    // session.
    const of = asked.filter((address) => !/^\/v1\/(sessions|list|strip\?session=[^&]*$)/.test(address));
    expect(of.length).toBeGreaterThan(8);
    expect(of.filter((address) => !/[?&]tx=\d+/.test(address))).toEqual([]);
    expectQuiet(watched);
    await page.close();
  });

  test('leads from a line number to the calls whose contexts had the line', async () => {
    const watched = await open(`object?session=${made.session}&id=${made.file}&a=none`);
    const { page } = watched;
    await page.getByRole('link', { name: 'Calls that saw line 1' }).click();
    await page.getByText('In full in the context at calls').first().waitFor();
    expect(await page.getByRole('searchbox').last().inputValue()).toMatch(/^const (one|two) = \d;$/);
    expectQuiet(watched);
    await page.close();
  });

  test('shows a line of a megabyte and a hundred thousand lines with few elements', async () => {
    const watched = await open(`object?session=${made.session}&id=${made.long}`);
    const { page } = watched;
    await page.getByText('long line long line').first().waitFor();
    expect(await page.locator('.virtual-row').count()).toBeLessThan(200);
    await page
      .locator('.virtual')
      .first()
      .evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await page.getByText('line 99999').waitFor();
    expectQuiet(watched);
    await page.close();
  });

  test('has keys from call to call, and an address for every place', async () => {
    const watched = await open(`strip?session=${made.session}`);
    const { page } = watched;
    const chosen = () => page.locator('.call-head h2').innerText();
    const last = await chosen();
    await page.keyboard.press('k');
    await expect(chosen()).resolves.not.toBe(last);
    await page.keyboard.press('[');
    await page.keyboard.press(']');
    await page.keyboard.press('j');
    expect(new URL(page.url()).searchParams.get('tx')).toMatch(/^\d+$/);
    const before = await chosen();
    const address = page.url();
    await page.keyboard.press('r');
    await page.getByRole('heading', { name: /as the model saw it/ }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByLabel('View or action').fill('context, call by call');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /Context at call/ }).waitFor();
    await page.keyboard.press('/');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('type'))).toBe('search');
    await page.goto(address);
    await watched.settled();
    expect(await chosen()).toBe(before);
    expectQuiet(watched);
    await page.close();
  });

  test('shows an unauthorised visitor only a login', async () => {
    const stranger = await browser.newContext();
    const page = await stranger.newPage();
    await page.goto(`${origin}/review/strip?session=${made.session}#token=wrong`);
    await page.getByRole('alert').getByText('wrong').waitFor();
    expect(page.url()).not.toContain('token');
    expect(await page.locator('main').innerText()).not.toContain('Look at');
    await page.getByLabel('Token').fill(serve.token ?? '');
    await page.getByRole('button', { name: 'Enter' }).click();
    await page.getByRole('heading', { name: /Context at call/ }).waitFor();
    await stranger.close();
  });
});
