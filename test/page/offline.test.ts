import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, BrowserContext } from 'playwright-core';
import { askHere } from '../support/ask-here.js';
import { suiteData } from '../support/mcp-clients.js';
import { expectHostileTextsShown, expectQuiet, type WatchedPage, watchedPage } from './browser.js';
import { openBrowser } from './chromium.js';
import { type RecordedSession, recordedSession } from './recorded-session.js';

describe('a session in one file', () => {
  let made: RecordedSession;
  let file: string;
  let browser: Browser;
  let context: BrowserContext;

  const run = (...args: string[]) => askHere([...args, '--data', suiteData()]);

  beforeAll(async () => {
    made = await recordedSession(`file${randomUUID().slice(0, 8)}`);
    expect(
      (
        await run(
          'note',
          `${made.session}@turn:2`,
          '--verdict',
          'wrong',
          '--text',
          'It <b>did</b> not look.',
          '--by',
          'ann',
        )
      ).code,
    ).toBe(0);
    file = join(made.root, 'session.html');
    const { code, stderr } = await run('export', made.session, '--html', file);
    expect([code, stderr]).toEqual([0, '']);
    browser = await openBrowser();
    context = await browser.newContext({ colorScheme: 'dark', viewport: { width: 1_100, height: 720 }, offline: true });
  });
  afterAll(async () => {
    await browser?.close();
    await made?.close();
  });

  async function open(view: string, path = file): Promise<WatchedPage> {
    const address = pathToFileURL(path).href;
    const watched = await watchedPage(context, address);
    await watched.page.goto(`${address}#/${view}`);
    await watched.settled();
    return watched;
  }

  const views: readonly (readonly [string, () => string, RegExp])[] = [
    ['file', () => '', /Look at a\.ts/],
    ['context', () => 'strip', /Context/],
    ['conversation', () => 'conversation', /Conversation/],
    ['call', () => 'request', /Call/],
    ['changes', () => 'changes', /What changed/],
    ['what left', () => 'changes?kind=gone', /What changed/],
    ['money', () => 'money', /Money/],
    ['files', () => 'files', /Files/],
    ['file', () => `object?id=${made.file}&a=1&b=2`, /File/],
    ['search', () => 'search?q=script', /Search/],
    ['notes', () => 'notes', /Notes/],
    ['compare', () => 'compare', /Compare/],
    ['query', () => 'query', /Query/],
  ];

  test.each(views)('shows %s from the disk, without a network, accessibly', async (_name, address, title) => {
    const watched = await open(address());
    const { page } = watched;
    expect(await page.locator('h1').first().textContent()).toMatch(title);
    expect(await page.locator('[role=alert]').allTextContents()).toEqual([]);
    expectQuiet(watched);
    expect(await watched.barriers()).toEqual([]);
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await watched.barriers()).toEqual([]);
    await page.close();
  });

  test('has a request, hashed by the browser, and changes for every call; hostile texts stay texts', async () => {
    const watched = await open('strip');
    const { page } = watched;
    const steps = await page.evaluate(
      () => JSON.parse(atob(document.querySelector('#palimpsest-manifest')?.textContent ?? '')).calls as number[],
    );
    expect(steps).toHaveLength(made.contexts);
    for (const [i, step] of steps.entries()) {
      await page.goto(`${pathToFileURL(file).href}#/request?step=${step}`);
      await watched.settled();
      await page.getByRole('status', { name: 'Check' }).getByText('Exactly what was sent').waitFor();
      if (i === 0) continue;
      await page.goto(`${pathToFileURL(file).href}#/changes?step=${step}`);
      await watched.settled();
      expect(await page.locator('[role=alert]').allTextContents()).toEqual([]);
    }
    await page.goto(`${pathToFileURL(file).href}#/request?step=${steps.at(-1)}`);
    await watched.settled();
    await expectHostileTextsShown(watched);
    expectQuiet(watched);
    await page.close();
  });

  test('is hashed whole for its reader, with reviewers’ notes', async () => {
    const watched = await open('');
    const { page } = watched;
    await page.getByRole('button', { name: 'Verify' }).click();
    const told = page.getByRole('status', { name: 'Verification' });
    await told.getByText('✓ Everything matches its hash').waitFor();
    expect(await told.innerText()).toContain(`${made.contexts} contexts are byte for byte as sent`);
    const notes = page.getByRole('region', { name: 'Notes' });
    expect(await notes.innerText()).toMatch(/wrong[\s\S]*turn 2[\s\S]*ann[\s\S]*It <b>did<\/b> not look\./);
    expectQuiet(watched);
    await page.close();
  });

  test('has the money, the authors, and a conversation with whole results, by the words of its user', async () => {
    const watched = await open('');
    const { page } = watched;
    expect(await page.locator('h1').innerText()).toBe('Look at a.ts');
    await page.goto(`${pathToFileURL(file).href}#/money`);
    await page.getByRole('region', { name: 'Where it went' }).getByText('$').first().waitFor();
    await page.goto(`${pathToFileURL(file).href}#/conversation`);
    // Blocks render when they come near the screen.
    await page.locator('.entries').waitFor();
    await page.keyboard.press('End');
    const prose = page.locator('.message .prose').filter({ hasText: 'not bold' });
    await prose.locator('li code').getByText('code').waitFor();
    expect(await prose.locator('table td').allInnerTexts()).toEqual(['a.ts', 'read']);
    expect(await prose.locator('a, img, b').count()).toBe(0);
    expect(await prose.innerText()).toContain('<b onclick="alert(8)">not bold</b>');
    const call = page.locator('.entry.call').filter({ has: page.locator('.call-name', { hasText: 'src/long.txt' }) });
    await call.locator('.call-name').click();
    await call.getByRole('region', { name: 'Result of' }).getByText('long').waitFor();
    await page.goto(`${pathToFileURL(file).href}#/object?id=${made.file}`);
    await page.locator('.versions .actor').getByText('unknown').first().waitFor();
    await page.getByText('calls of this session named it').waitFor();
    expectQuiet(watched);
    await page.close();
  });

  test('reveals altered and cut parts', async () => {
    const whole = await readFile(file, 'utf8');
    const blocks = [...whole.matchAll(/id="palimpsest-block-(\d+)">([^<]*)</g)];
    expect(blocks.length).toBeGreaterThan(0);
    const [, number = '', base64 = ''] = blocks.at(-1) ?? [];
    const altered = join(made.root, 'altered.html');
    const bytes = Buffer.from(base64, 'base64');
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 0x20;
    await writeFile(altered, whole.replace(base64, bytes.toString('base64')));
    const watched = await open('', altered);
    await watched.page.getByRole('button', { name: 'Verify' }).click();
    await watched.page.getByText(/✗/).waitFor();
    expect(await watched.page.getByRole('status', { name: 'Verification' }).innerText()).toMatch(
      new RegExp(`block ${number}`),
    );
    await watched.page.close();
    const short = join(made.root, 'short.html');
    await writeFile(
      short,
      whole.replace(
        /<script type="application\/octet-stream" id="palimpsest-manifest">[^<]*</,
        '<script type="application/octet-stream" id="palimpsest-manifest"><',
      ),
    );
    const { page } = await open('', short);
    await page.getByRole('alert').getByText('altered or cut short').waitFor();
    await page.close();
  });

  test('compares versions of a file, and renders few rows of a long one', async () => {
    const watched = await open(`object?id=${made.file}&a=1&b=2`);
    const { page } = watched;
    await page.locator('.diff .added').getByText('const two = 2;').waitFor();
    await page.goto(`${pathToFileURL(file).href}#/object?id=${made.long}`);
    await page.getByText('long line long line').first().waitFor();
    expect(await page.locator('.virtual-row').count()).toBeLessThan(200);
    expectQuiet(watched);
    await page.close();
  });

  test('has keys from call to call, an address for every place, and offers no action of a server', async () => {
    const watched = await open('strip');
    const { page } = watched;
    const chosen = () => page.locator('.call-head h2').innerText();
    const last = await chosen();
    await page.keyboard.press('k');
    await expect(chosen()).resolves.not.toBe(last);
    const [before, address] = [await chosen(), page.url()];
    expect(address).toContain('#/strip?');
    await page.keyboard.press('r');
    await page.getByRole('heading', { name: /as the model saw it/ }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByLabel('View or action').fill('prompts, prose');
    await page.keyboard.press('Enter');
    await page.getByText('Look at a.ts').first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('two');
    await page.keyboard.press('Enter');
    await page.getByText('In full in the context at calls').first().waitFor();
    await page.goBack();
    await page.goto(address);
    await watched.settled();
    expect(await chosen()).toBe(before);
    await page.goto(`${pathToFileURL(file).href}#/query`);
    await page.getByText('A query asks a database').waitFor();
    expectQuiet(watched);
    await page.close();
  });

  test('is private, deterministic, and never overwrites another file', async () => {
    const again = await run('export', made.session, '--html', join(made.root, 'again.html'), '--json');
    expect(again.code).toBe(0);
    expect((await readFile(join(made.root, 'again.html'))).equals(await readFile(file))).toBe(true);
    const over = await run('export', made.session, '--html', file);
    expect([over.code, over.stderr]).toEqual([1, expect.stringContaining('is not overwritten')]);
  });
});
