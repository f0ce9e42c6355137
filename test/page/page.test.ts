import { randomUUID } from 'node:crypto';
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

  const views: readonly (readonly [string, () => string, string])[] = [
    ['sessions', () => '?q=page', 'Sessions'],
    ['strip', () => `strip?session=${made.session}&all=1`, 'Context strip'],
    ['turns', () => `turns?session=${made.session}`, 'Turns'],
    ['request', () => `request?session=${made.session}`, 'Request'],
    ['changes', () => `changes?session=${made.session}`, 'From call to call'],
    ['what left', () => `changes?session=${made.session}&kind=gone`, 'From call to call'],
    ['object', () => `object?session=${made.session}&id=${made.file}&a=1&b=2`, 'Object'],
    ['search', () => `search?session=${made.session}&q=script`, 'Search'],
    ['files', () => `files?session=${made.session}`, 'Files'],
    ['compare', () => `compare?session=${made.session}&with=${made.session}`, 'Compare'],
    ['query', () => `query?q=${encodeURIComponent('{:find [?tool (count ?e)] :where [[?e :tool ?tool]]}')}`, 'Query'],
  ];

  test.each(views)('shows %s accessibly, without forbidden actions', async (_name, address, title) => {
    const watched = await open(address());
    const { page } = watched;
    expect(await page.locator('h1').first().textContent()).toContain(title);
    await page.waitForLoadState('networkidle');
    await watched.settled();
    expect(await page.locator('[role=alert]').allTextContents()).toEqual([]);
    expect(page.url()).not.toContain('token');
    expectQuiet(watched);
    expect(await watched.barriers()).toEqual([]);
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await watched.barriers()).toEqual([]);
    await page.close();
  });

  test('hashes the exact request in the browser and matches the delivered one', async () => {
    const watched = await open(`request?session=${made.session}`);
    const check = watched.page.getByRole('status', { name: 'Check' });
    await check.getByText('Rebuilt byte for byte').waitFor();
    const [recorded, remade] = await check.locator('code').allTextContents();
    expect(recorded?.replace(/^recorded\s+/, '')).toBe(remade?.replace(/^made\s+/, ''));
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
    await page.goto(`${origin}/review/turns?session=${made.session}`);
    await watched.settled();
    expect(await page.locator('main').innerText()).toContain('<script>alert(');
    await page.goto(`${origin}/review/request?session=${made.session}&step=${answer.at(-1)?.step}`);
    await watched.settled();
    await expectHostileTextsShown(watched);
    expectQuiet(watched);
    await page.close();
  });

  test('names the author of a change', async () => {
    const watched = await open(`changes?session=${made.session}`);
    const { page } = watched;
    const gone = page.getByRole('region', { name: /Collapsed/ });
    await gone.getByText('agent').first().waitFor();
    expect(await gone.innerText()).toMatch(/a\.ts.*\n?.*made inactive by deactivate/);
    await gone.getByRole('button').first().click();
    await page.getByText('const two = 2;').first().waitFor();
    expectQuiet(watched);
    await page.close();
  });

  test('compares two versions of a file, on both clocks', async () => {
    const watched = await open(`object?session=${made.session}&id=${made.file}`);
    const { page } = watched;
    await page.getByRole('button', { name: 'from 1' }).click();
    await page.getByRole('button', { name: 'to 2' }).click();
    await page.locator('.diff .added').getByText('const two = 2;').waitFor();
    expect(await page.locator('.diff .removed').allInnerTexts()).toEqual([expect.stringContaining('const one = 1;')]);
    await page.getByLabel('True at (valid time)').fill('0');
    await page.getByRole('heading', { name: /Version 1/ }).waitFor();
    expectQuiet(watched);
    await page.close();
  });

  test('leads from a line number to the calls whose contexts had the line', async () => {
    const watched = await open(`object?session=${made.session}&id=${made.file}`);
    const { page } = watched;
    await page.getByRole('link', { name: 'In which contexts line 1 stood' }).click();
    await page.getByRole('heading', { name: 'Search' }).waitFor();
    await page.getByText('Stood whole in the context at').first().waitFor();
    expect(await page.getByRole('searchbox').first().inputValue()).toMatch(/^const (one|two) = \d;$/);
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
    const chosen = () => page.locator('.chosen-call strong').innerText();
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
    await page.getByRole('heading', { name: 'Request', exact: true }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByLabel('Verb').fill('strip');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Context strip' }).waitFor();
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
    await page.getByRole('alert').getByText('already used').waitFor();
    expect(page.url()).not.toContain('token');
    expect(await page.locator('main').innerText()).not.toContain('Look at');
    await page.getByLabel('Token').fill(serve.token ?? '');
    await page.getByRole('button', { name: 'Enter' }).click();
    await page.getByRole('heading', { name: 'Context strip' }).waitFor();
    await stranger.close();
  });
});
