import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, BrowserContext } from 'playwright-core';
import { askHere } from '../support/ask-here.js';
import { type Serve, startServe, suiteData, temporaryRoot } from '../support/mcp-clients.js';
import { recordingPath } from '../support/recordings.js';
import { fixtures, replay } from '../support/replays.js';
import { expectQuiet, watchedPage } from './browser.js';
import { openBrowser } from './chromium.js';

/** One recording of each format, as its program writes it. */
const RECORDINGS: Readonly<Record<string, string>> = {
  'claude-code': 'coding.jsonl',
  cline: 'session.messages.json',
  codex: 'coding.jsonl',
  'gemini-cli': 'session.jsonl',
  'mini-swe-agent': 'calls.traj.json',
  'openai-chat': 'messages.jsonl',
  opencode: 'session.json',
  'openhands-legacy': 'events.json',
  'openhands-sdk': 'events.jsonl',
  pi: 'coding.jsonl',
  'swe-agent': 'calls.traj',
};

describe('a replayed session of each format', () => {
  let root: string;
  let remove: () => Promise<void>;
  let serve: Serve;
  let origin: string;
  let browser: Browser;
  let context: BrowserContext;
  let disk: BrowserContext;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    serve = await startServe(['--share-sessions'], root);
    ({ origin } = new URL(serve.url));
    browser = await openBrowser();
    [context, disk] = [await browser.newContext(), await browser.newContext({ offline: true })];
  });
  afterAll(async () => {
    await browser?.close();
    await serve?.close();
    await remove?.();
  });

  test('exists once', async () => {
    expect(Object.keys(RECORDINGS).sort()).toEqual([...(await fixtures()).keys()].sort());
  });

  test.each(Object.entries(RECORDINGS))('%s: appears in every view, served and in a file', async (format, name) => {
    const { sessions } = await replay(recordingPath(`${format}/${name}`));
    const session = sessions[0]?.session ?? '';
    const watched = await watchedPage(context, origin);
    const { page } = watched;
    const shown = async (address: string): Promise<void> => {
      await page.goto(address);
      await watched.settled();
      expect([address, await page.locator('[role=alert]').allTextContents()]).toEqual([address, []]);
    };
    await shown(`${origin}/review/strip?session=${session}#token=${serve.token}`);
    // The chosen object is a call, because `serve` refuses files outside of its folders.
    const object = await page.locator('.band-name[href*="%40"]').first().getAttribute('href');
    for (const view of [
      'conversation',
      'changes',
      'changes?kind=gone',
      'money',
      'files',
      'notes',
      'search?q=the',
      'query?q={:find [e] :where [[e :type "chat"]]}',
      'request',
    ]) {
      await shown(`${origin}/review/${view}${view.includes('?') ? '&' : '?'}session=${session}`);
    }
    await page
      .getByRole('status', { name: 'Check' })
      .getByText(/As the transcript has it|Exactly what was sent/)
      .waitFor();
    if (object !== null) {
      await shown(new URL(object, origin).href);
      // Another agent builds the requests of this session, so no action on objects works.
      await page.getByText(/nothing can be activated or pinned for it here/).waitFor();
      expect(await page.getByRole('button', { name: /^(?:de)?activate|^pin/ }).count()).toBe(0);
      const refused = await fetch(`${origin}/v1/sessions/${session}/sets`, {
        method: 'POST',
        headers: { authorization: `Bearer ${serve.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ verb: 'pin', ids: [new URL(object, origin).searchParams.get('id')] }),
      });
      expect([refused.status, await refused.json()]).toEqual([
        409,
        expect.objectContaining({ code: 'foreign-session' }),
      ]);
      await shown(`${origin}/review/strip?session=${session}`);
      await page.getByRole('button', { name: /^Fork before call/ }).click();
      await page.getByRole('button', { name: 'Do it' }).click();
      await page.getByText(/as the transcript has them. The other agent does not know of it/).waitFor();
      const fork = await page.locator('main a', { hasText: /^2\d{7}-/ }).getAttribute('href');
      await shown(new URL(fork ?? '', origin).href);
      // The row may be folded.
      const own = await page.locator('.band-name[href*="%40"]').first().getAttribute('href');
      await shown(new URL(own ?? '', origin).href);
      await page.getByRole('button', { name: /^(?:de)?activate/ }).waitFor();
    }
    await shown(`${origin}/review/?text=${session}`);
    await shown(`${origin}/review/compare?session=${session}&with=${session}`);
    expectQuiet(watched);
    await page.close();

    const file = join(root, `${format}.html`);
    const { code, stderr } = await askHere(['export', session, '--html', file, '--data', suiteData()]);
    expect([code, stderr]).toEqual([0, '']);
    const address = pathToFileURL(file).href;
    const offline = await watchedPage(disk, address);
    const own =
      object === null ? [] : [`object?id=${encodeURIComponent(new URL(object, origin).searchParams.get('id') ?? '')}`];
    for (const view of [
      '',
      'strip',
      'conversation',
      'files',
      'changes',
      'changes?kind=gone',
      ...own,
      'search?q=the',
      'query',
      'request',
    ]) {
      await offline.page.goto(`${address}#/${view}`);
      await offline.settled();
      expect([view, await offline.page.locator('[role=alert]').allTextContents()]).toEqual([view, []]);
    }
    await offline.page
      .getByRole('status', { name: 'Check' })
      .getByText(/As the transcript has it|Exactly what was sent/)
      .waitFor();
    expectQuiet(offline);
    await offline.page.close();
  });
});
