import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { ContextClient, localFilesystemId, type NodeHandle } from '../../src/index.js';
import { openBrowser } from '../../test/page/chromium.js';
import { peakBytes } from '../machine.js';
import { median, quantile } from '../quantile.js';
import type { CaseResult, Sample } from '../results.js';
import { projectFolder, type Workshop } from '../workshop.js';

/** Calls of the scrolled session, and milliseconds of scrolling. */
const SCROLLED_CALLS = 10_000;
const SCROLL_MS = 4_000;
/** The recording of 100 MB: number of outputs and characters of each. */
const OUTPUTS = 500;
const OUTPUT_CHARS = 200_000;
/** Milliseconds of a frame at 60 frames a second. */
const FRAME_MS = 1_000 / 60;

interface Server {
  readonly origin: string;
  readonly token: string;
  close(): Promise<void>;
}

async function startServer(workshop: Workshop, dataDir: string): Promise<Server> {
  const cli = join(projectFolder, 'dist', 'cli.js');
  const args = [
    'serve',
    '--port',
    '0',
    '--root',
    workshop.files,
    '--data',
    dataDir,
    '--profile',
    'rocksdb',
    '--share-sessions',
  ];
  const child = spawn(process.execPath, [cli, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit');
  let text = '';
  for await (const chunk of child.stderr) {
    text += String(chunk);
    const [, url] = /listens on (\S+)\n/.exec(text) ?? [];
    const [, token] = /Bearer (\S+)\n/.exec(text) ?? [];
    if (url === undefined || token === undefined) continue;
    child.stderr.resume();
    const close = async (): Promise<void> => {
      child.kill('SIGTERM');
      await ended;
    };
    return { origin: new URL(url).origin, token, close };
  }
  throw new Error(`the server ended before it listened: ${text}`);
}

/** Opens a client that writes without waiting for each transaction. */
async function writer(workshop: Workshop, node: NodeHandle, dataDir: string): Promise<ContextClient> {
  return ContextClient.create({
    address: node.address,
    roots: [workshop.files],
    cwd: workshop.files,
    filesystemId: await localFilesystemId(dataDir),
    soleWriter: true,
    track: false,
  });
}

/**
 * Writes a session whose turns have a message, a call and an answer. With `contexts`, each call
 * gets a context first.
 */
async function makeSession(
  client: ContextClient,
  id: string,
  {
    turns,
    content,
    contexts,
  }: { readonly turns: number; readonly content: (turn: number) => string; readonly contexts: boolean },
): Promise<void> {
  const session = await client.openSession({ id });
  for (let turn = 1; turn <= turns; turn += 1) {
    await session.reportMessage({ role: 'user', text: `Turn ${turn}: please look into this part of it.` });
    if (contexts) await session.assemble({ deliver: 'library' });
    const output = content(turn);
    await session.recordCall({ tool: 'bash', args: { turn }, status: 'ok', content: output, answer: () => output });
    await client.backpressure(500, 120_000);
    if (contexts) await session.reportMessage({ role: 'assistant', text: `Turn ${turn}: this is what I found.` });
  }
  await client.closeSession(session);
  // Stores everything before the next session opens.
  await client.backpressure(0, 300_000);
}

/**
 * Writes a session whose strip has this many columns, one per turn, because it has no contexts.
 * Every tenth turn lists a file, which adds a row.
 */
async function makeColumns(client: ContextClient, id: string, columns: number): Promise<void> {
  const session = await client.openSession({ id });
  for (let turn = 1; turn <= columns; turn += 1) {
    await session.reportMessage({ role: 'user', text: `Turn ${turn}` });
    const output = `output ${turn}`;
    if (turn % 10 === 0)
      await session.recordCall({ tool: 'bash', args: { turn }, status: 'ok', content: output, answer: () => output });
    await client.backpressure(2_000, 120_000);
  }
  await client.closeSession(session);
  // Stores everything before the next session opens.
  await client.backpressure(0, 300_000);
}

/**
 * Exports a session as one page. Returns the seconds, the file size, and the peak memory of the
 * process.
 */
async function exportedPage(
  workshop: Workshop,
  { dataDir, session, to }: { readonly dataDir: string; readonly session: string; readonly to: string },
): Promise<{ readonly seconds: number; readonly bytes: number; readonly resident: number }> {
  const cli = join(projectFolder, 'dist', 'cli.js');
  const began = performance.now();
  const child = spawn(process.execPath, [cli, 'export', session, '--html', to, '--data', dataDir], {
    stdio: 'ignore',
    cwd: workshop.files,
  });
  const ended = once(child, 'exit');
  let resident = 0;
  const look = async (): Promise<void> => {
    resident = Math.max(resident, await peakBytes(child.pid ?? 0));
  };
  const looking = setInterval(() => void look(), 50);
  const [code] = (await ended) as [number | null];
  clearInterval(looking);
  if (code !== 0) throw new Error(`palimpsest export ended with ${code}`);
  return { seconds: (performance.now() - began) / 1_000, bytes: (await stat(to)).size, resident };
}

/** The globals of the page that this case uses. */
interface PageGlobals {
  readonly document: {
    querySelector(selector: string): ScrolledBox | null;
    readonly body: { readonly innerText: string };
  };
  requestAnimationFrame(run: (now: number) => void): void;
}

interface ScrolledBox {
  scrollLeft: number;
  scrollTop: number;
  readonly scrollWidth: number;
  readonly scrollHeight: number;
  readonly clientWidth: number;
  readonly clientHeight: number;
}

/**
 * Runs in the page, whose policy allows functions only. Returns whether a view is shown and no
 * request is pending.
 */
function isShown(): boolean {
  const { document } = globalThis as unknown as PageGlobals;
  return document.querySelector('h1') !== null && !document.body.innerText.includes('Reading…');
}

async function shownAfter(page: Page, act: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await act();
  await page.waitForFunction(isShown, undefined, { polling: 'raf' });
  return performance.now() - began;
}

/** Times the first view of a session in a browser with an empty cache. */
async function firstView(browser: Browser, { origin, token }: Server, view: string): Promise<number> {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 } });
  const page = await context.newPage();
  try {
    return await shownAfter(page, () => page.goto(`${origin}/review/${view}#token=${token}`, { waitUntil: 'commit' }));
  } finally {
    await context.close();
  }
}

const LATER = ['turns', 'request', 'changes', 'strip', 'search'] as const;

/** Times each view after the first, opened by its link in the open page. */
async function laterViews(page: Page): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const view of LATER) {
    const link = page.locator(`nav[aria-label=Views] a[href*="/review/${view}"]`);
    found.set(view, await shownAfter(page, () => link.click()));
  }
  return found;
}

/**
 * Runs in the page: scrolls an element both ways, one step per frame. Returns the milliseconds of
 * each frame.
 */
function scrolled([selector, ms]: readonly [string, number]): Promise<readonly number[]> {
  const { document, requestAnimationFrame } = globalThis as unknown as PageGlobals;
  return new Promise((resolve, reject) => {
    const box = document.querySelector(selector);
    if (box === null) return reject(new Error(`there is no ${selector}`));
    const frames: number[] = [];
    const began = performance.now();
    let last = began;
    const step = (now: number): void => {
      frames.push(now - last);
      last = now;
      const part = (now - began) / ms;
      box.scrollLeft = part * (box.scrollWidth - box.clientWidth);
      box.scrollTop = part * (box.scrollHeight - box.clientHeight);
      if (part < 1) requestAnimationFrame(step);
      else resolve(frames.slice(1));
    };
    requestAnimationFrame(step);
  });
}

/**
 * Measures the review page in Chromium at realistic sizes. It times the first view of a session of
 * a thousand turns with contexts and the later views. It scrolls ten thousand calls, opens a
 * recording of 100 MB, and exports the session as one file. The node and the server already run.
 * Each first view uses a browser with an empty cache.
 */
export async function measurePage(workshop: Workshop): Promise<CaseResult> {
  const { turns, rounds } = workshop.sizes.history;
  const dataDir = workshop.dataDir('page-data');
  const node = await workshop.node(dataDir);
  const client = await writer(workshop, node, dataDir);
  workshop.tell(`a session of ${turns} turns`);
  await makeSession(client, 'bench-page-turns', {
    turns,
    contexts: true,
    content: (turn) => `${turn}: ${'what the command says\n'.repeat(40)}`,
  });
  const outputs = Math.min(OUTPUTS, turns / 2);
  workshop.tell(`a session of ${Math.round((outputs * OUTPUT_CHARS) / 1_000_000)} MB`);
  const line = 'what a long output says, line by line, as it was recorded then\n';
  const large = (turn: number): string => `${turn}\n${line.repeat(OUTPUT_CHARS / line.length)}`;
  await makeSession(client, 'bench-page-large', { turns: outputs, contexts: false, content: large });
  const calls = Math.min(SCROLLED_CALLS, turns * 10);
  workshop.tell(`a session of ${calls} calls`);
  await makeColumns(client, 'bench-page-calls', calls);
  await client.close();

  workshop.tell(`a page in a file, of ${turns} turns`);
  const written = await exportedPage(workshop, {
    dataDir,
    session: 'bench-page-turns',
    to: join(dataDir, 'turns.html'),
  });

  const server = await startServer(workshop, dataDir);
  const browser = await openBrowser();
  try {
    workshop.tell('views');
    const samples: Sample[] = [];
    const sample = async (name: string, times: number, measure: () => Promise<number>): Promise<number> => {
      const ms: number[] = [];
      for (let i = 0; i < times; i += 1) ms.push(await measure());
      samples.push({ name, ms });
      return median(ms);
    };
    const times = Math.max(3, Math.min(7, rounds));
    await firstView(browser, server, '');
    const first = await sample(`first view, the strip of ${turns} turns`, times, () =>
      firstView(browser, server, 'strip?session=bench-page-turns'),
    );
    const opened = await sample('first view, the strip of the large recording', times, () =>
      firstView(browser, server, 'strip?session=bench-page-large'),
    );
    const context = await browser.newContext({ viewport: { width: 1_280, height: 800 } });
    const page = await context.newPage();
    const later = new Map<string, number[]>();
    for (let i = 0; i < times; i += 1) {
      await shownAfter(page, () =>
        page.goto(`${server.origin}/review/strip?session=bench-page-turns#token=${server.token}`),
      );
      for (const [view, ms] of await laterViews(page)) later.set(view, [...(later.get(view) ?? []), ms]);
    }
    for (const [view, ms] of later) samples.push({ name: `later view, ${view}`, ms });
    workshop.tell('scrolling');
    await shownAfter(page, () =>
      page.goto(`${server.origin}/review/strip?session=bench-page-calls&all=1#token=${server.token}`),
    );
    const frames = await page.evaluate(scrolled, ['.strip', SCROLL_MS] as const);
    samples.push({ name: `a frame while ${calls} calls are scrolled both ways`, ms: frames });
    const slowest = Math.max(...[...later.values()].map((ms) => median(ms)));
    const perSecond = 1_000 / (frames.reduce((sum, ms) => sum + ms, 0) / frames.length);
    return {
      cases: [
        { kind: 'timed', title: 'the review page in Chromium', samples, yardsticks: [] },
        {
          kind: 'counted',
          title: 'scrolling',
          rows: [
            { name: 'frames a second', value: perSecond, unit: '' },
            {
              name: 'frames of more than two sixtieths of a second',
              value: frames.filter((ms) => ms > 2 * FRAME_MS).length,
              unit: '',
            },
            { name: 'a frame at most, of 95 in 100', value: quantile(frames, 0.95), unit: 'ms' },
          ],
        },
        {
          kind: 'counted',
          title: `export --html of ${turns} turns`,
          rows: [
            { name: 'written in', value: written.seconds, unit: 's' },
            { name: 'the file', value: written.bytes / 1_048_576, unit: 'MiB' },
            { name: 'the most memory of the process', value: written.resident / 1_048_576, unit: 'MiB' },
          ],
        },
      ],
      goals: [
        { what: `export --html of ${turns} turns`, measured: written.seconds, bar: 60, unit: 's' },
        { what: `first view of a session of ${turns} turns`, measured: first, bar: 1_000, unit: 'ms' },
        { what: 'the slowest later view, median', measured: slowest, bar: 200, unit: 'ms' },
        { what: 'a recording of 100 MB opens', measured: opened, bar: 1_500, unit: 'ms' },
        { what: 'a frame while 10,000 calls are scrolled', measured: 1_000 / perSecond, bar: 1_000 / 59.5, unit: 'ms' },
      ],
    };
  } finally {
    await browser.close();
    await server.close();
  }
}
