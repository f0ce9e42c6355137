import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, BrowserContext } from 'playwright-core';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { ContextSession } from '../../src/client/session/context-session.js';
import { askHere } from '../support/ask-here.js';
import { openClient, wholeRead } from '../support/context.js';
import { HarnessApi } from '../support/harness-api.js';
import { type Serve, startServe, suiteData, temporaryRoot } from '../support/mcp-clients.js';
import { expectQuiet, type WatchedPage, watchedPage } from './browser.js';
import { openBrowser } from './chromium.js';

const LONG = 'a line that is long enough to cost something\n'.repeat(40);

describe('a session in use, in the page', () => {
  const name = `live${randomUUID().slice(0, 8)}`;
  let root: string;
  let remove: () => Promise<void>;
  let serve: Serve;
  let origin: string;
  let api: HarnessApi;
  /** An agent in another process than the server. */
  let agent: ContextClient;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    await mkdir(join(root, 'src'));
    await writeFile(join(root, 'src/a.ts'), LONG);
    serve = await startServe(['--share-sessions'], root);
    ({ origin } = new URL(serve.url));
    api = new HarnessApi(serve);
    agent = await openClient(root);
    browser = await openBrowser();
    context = await browser.newContext({ viewport: { width: 1_100, height: 720 } });
  });
  afterAll(async () => {
    await browser?.close();
    await agent?.close();
    await api?.close();
    await serve?.close();
    await remove?.();
  });

  async function open(view: string): Promise<WatchedPage> {
    const watched = await watchedPage(context, origin);
    await watched.page.goto(`${origin}/review/${view}#token=${serve.token}`);
    await watched.settled();
    return watched;
  }
  const say = (session: ContextSession, text: string) => session.reportMessage({ role: 'user', text });
  /** A session of this server's own, in which a file was read. */
  async function served(id: string): Promise<string> {
    await api.call('openSession', undefined, { id });
    const messages = [{ role: 'user', content: 'look' }];
    await api.call('reportMessages', id, { messages });
    await api.call('reportToolCalls', id, {
      calls: [{ id: `${id}-read`, name: 'read_file', args: { path: 'src/a.ts' }, content: LONG }],
    });
    await api.call('beginTurn', id, {});
    return (await api.call('getSession', id)).active[0] ?? '';
  }

  test('follows an agent of another process, and keeps place, focus and scroll', async () => {
    const session = await agent.openSession({ id: `${name}-other` });
    for (let i = 1; i <= 30; i += 1) await say(session, `message ${i}\n${'more\n'.repeat(5)}`);
    expect(await session.isDelivered(10_000)).toBe(true);
    const [strip, turns] = [
      await open(`strip?session=${session.id}&live=1&step=7`),
      await open(`conversation?session=${session.id}&live=1`),
    ];
    await turns.page.getByText('message 30').first().waitFor();
    const eighth = turns.page.locator('.message', { hasText: 'message 8' });
    await eighth.getByRole('button', { name: 'Copy' }).focus();
    const seen = await eighth.boundingBox();
    const filter = strip.page.getByPlaceholder('Filter by name');
    await filter.fill('a.ts');
    for (let i = 31; i <= 33; i += 1) await say(session, `message ${i}`);
    await session.recordCall({
      tool: 'read',
      args: { path: 'src/a.ts' },
      status: 'ok',
      content: LONG,
      answer: () => LONG,
      readings: [await wholeRead(agent, 'src/a.ts')],
    });
    await session.assemble({ deliver: 'library' });
    await strip.page.getByRole('status', { name: 'Following' }).getByText('● following').waitFor();
    await strip.page.locator('.band-name', { hasText: 'a.ts' }).first().waitFor();
    expect(await filter.evaluate((box) => document.activeElement === box)).toBe(true);
    expect(new URL(strip.page.url()).searchParams.get('step')).toBe('7');
    await turns.page
      .getByRole('navigation', { name: 'Prompts' })
      .getByText('message 33')
      .waitFor({ state: 'attached' });
    const after = await eighth.boundingBox();
    expect(Math.abs((after?.y ?? 0) - (seen?.y ?? 0))).toBeLessThan(3);
    expect(await turns.page.evaluate(() => document.activeElement?.textContent)).toBe('Copy');
    // Without following, the page gets a fixed place.
    await strip.page.getByRole('button', { name: 'Follow' }).click();
    await strip.page.waitForURL(/tx=\d+/);
    for (const watched of [strip, turns]) expectQuiet(watched);
    expect(await turns.barriers()).toEqual([]);
    await Promise.all([strip.page.close(), turns.page.close()]);
    await agent.closeSession(session);
  });

  test('lets a person change the sets after the price, and undo it', async () => {
    const id = `${name}-own`;
    const file = await served(id);
    const watched = await open(`object?session=${id}&live=1&id=${file}`);
    const { page } = watched;
    await page.getByRole('button', { name: /^deactivate / }).click();
    await page.getByText(/Price: .* each one from then on is \d+ tokens shorter/).waitFor();
    expect(await watched.barriers()).toEqual([]);
    expect((await api.call('getSession', id)).active).toContain(file);
    await page.keyboard.press('Enter');
    await page.getByText('at the last call one line only in the context').waitFor();
    expect((await api.call('getSession', id)).active).not.toContain(file);
    await page.goto(`${origin}/review/conversation?session=${id}&live=1`);
    await page
      .getByRole('button', { name: /^undo step/ })
      .last()
      .click();
    await page.getByText(/becomes active/).waitFor();
    await page.getByRole('button', { name: 'Do it' }).click();
    await page.getByText(/undid step/).waitFor();
    expect((await api.call('getSession', id)).active).toContain(file);
    expectQuiet(watched);
    await page.close();
  });

  test('refuses changes to a session of another process, and names it', async () => {
    const file = await served(`${name}-held`);
    const watched = await open(`object?session=${name}-held&id=${file}`);
    const before = await api.call('getSession', `${name}-held`);
    const told = await watched.page.evaluate(
      async ([session, id]) => {
        const ask = (headers: Record<string, string>) =>
          fetch(`/v1/sessions/${session}/close`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', ...headers },
            body: '{}',
          });
        const secret = { authorization: `Bearer ${localStorage.getItem('palimpsest-secret')}` };
        return [id, (await ask(secret)).status, (await ask({})).status];
      },
      [before.id, file] as const,
    );
    // The page's secret allows what a person may do, and nothing that only an agent or its harness
    // does.
    expect(told).toEqual([file, 401, 401]);
    expect(await api.call('getSession', `${name}-held`)).toEqual(before);
    await watched.page.close();
  });

  test('forks from a call, and writes the files of that moment into a new folder', async () => {
    const id = `${name}-files`;
    await served(id);
    const watched = await open(`strip?session=${id}`);
    const { page } = watched;
    const fork = page.getByRole('button', { name: /^Fork before call/ });
    const place = await fork.boundingBox();
    await fork.click();
    await page.getByText(/A new session begins with what came before call/).waitFor();
    expect(await fork.boundingBox()).toEqual(place);
    await page.getByRole('button', { name: 'Cancel' }).click();
    const { sessions } = await api.call('listSessions');
    expect(sessions.filter(({ parent }) => parent?.session === id)).toEqual([]);
    await fork.click();
    await page.getByRole('button', { name: 'Do it' }).click();
    await page.getByText(/set this command as an MCP server of your agent/).waitFor();
    expect(await fork.boundingBox()).toEqual(place);
    await page.goto(`${origin}/review/files?session=${id}`);
    await watched.settled();
    const write = page.getByRole('button', { name: 'Write the files there, into a new folder' });
    await page.getByRole('textbox', { name: 'New folder' }).fill('/as-it-was');
    await write.click();
    await page.getByText('go into the new folder /as-it-was. Nothing there').waitFor();
    await page.getByRole('textbox', { name: 'New folder' }).fill('as-it-was');
    await write.click();
    await page.getByText('as-it-was, below the folder in which the server was started. Nothing there').waitFor();
    await page.getByRole('button', { name: 'Do it' }).click();
    await page.getByText(/1 file in/).waitFor();
    expect(await readFile(join(root, 'as-it-was/src/a.ts'), 'utf8')).toBe(LONG);
    expect(await page.locator('main').innerText()).toMatch(
      new RegExp(`palimpsest restore ${id}@step:\\d+ --apply --in-place --data /`),
    );
    expectQuiet(watched);
    await page.close();
  });

  test('compares a session with its fork, and names their shared past', async () => {
    const id = `${name}-compared`;
    await served(id);
    await api.call('forkSession', id, { id: `${id}-fork` });
    const watched = await open(`compare?session=${id}&with=${id}-fork`);
    const { page } = watched;
    await page.getByText(/They share their past: the first 1 call/).waitFor();
    const table = await page.locator('main table').first().innerText();
    expect(table).toMatch(/fork at call 2 of [\s\S]*Answers of the model[\s\S]*Cost/);
    await page.locator('canvas').first().waitFor();
    expect(await watched.barriers()).toEqual([]);
    expectQuiet(watched);
    await page.close();
  });

  test('the file of a fork says why it compares nothing, and how to compare', async () => {
    const id = `${name}-shared`;
    await served(id);
    await api.call('forkSession', id, { id: `${id}-fork` });
    const file = join(root, 'fork.html');
    const { code, stderr } = await askHere(['export', `${id}-fork`, '--html', file, '--data', suiteData()]);
    expect([code, stderr]).toEqual([0, '']);
    const { href } = pathToFileURL(file);
    const watched = await watchedPage(context, href);
    const { page } = watched;
    await page.goto(`${href}#/files`);
    await watched.settled();
    await page.getByRole('link', { name: 'Compare' }).click();
    await page.getByText(`It is a fork of ${id}.`).waitFor();
    expect(await page.locator('main').innerText()).toContain(`palimpsest export ${id} other.bundle`);
    expect(await watched.barriers()).toEqual([]);
    expectQuiet(watched);
    await page.close();
  });

  test('says what to do when its server has gone, and never that it follows', async () => {
    const id = `${name}-gone`;
    const other = await startServe(['--share-sessions'], root);
    const watched = await watchedPage(context, new URL(other.url).origin);
    const { page } = watched;
    await served(id);
    await page.goto(`${new URL(other.url).origin}/review/conversation?session=${id}&live=1#token=${other.token}`);
    const following = page.getByRole('status', { name: 'Following' });
    await following.getByText('● following').waitFor();
    await other.close();
    await following.getByText('connection lost').waitFor();
    await page.getByRole('link', { name: 'Money' }).click();
    await page.getByRole('alert').first().getByText('Start `palimpsest review` again').waitFor();
    expect(await following.innerText()).not.toContain('●');
    await page.close();
  });
});
