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

/** Number of calls of the long session. */
const LONG_CALLS = 1_600;
const FILE_CALLS = 200;
const SCROLL_MS = 4_000;
/** Number of calls that the followed session makes. */
const LIVE_CALLS = 10;
/** The recording of 100 MB: number of outputs and characters of each. */
const OUTPUTS = 500;
const OUTPUT_CHARS = 200_000;
/** Milliseconds per frame at 60 frames per second. */
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
    querySelector(selector: string): { readonly innerText: string } | null;
    readonly scrollingElement: ScrolledBox;
    readonly body: { readonly innerText: string };
  };
  requestAnimationFrame(run: (now: number) => void): void;
}

interface ScrolledBox {
  scrollTop: number;
  readonly scrollHeight: number;
  readonly clientHeight: number;
}

/**
 * Runs in the page. Returns whether a view is shown and no request is pending. It is a function,
 * because the page's policy allows no evaluated text.
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

const LATER = ['conversation', 'strip', 'request', 'money', 'files'] as const;

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
 * Runs in the page: scrolls it to its end, one step per frame. Returns the milliseconds of each
 * frame.
 */
function scrolled(ms: number): Promise<readonly number[]> {
  const { document, requestAnimationFrame } = globalThis as unknown as PageGlobals;
  return new Promise((resolve) => {
    const box = document.scrollingElement;
    const frames: number[] = [];
    const began = performance.now();
    let last = began;
    const step = (now: number): void => {
      frames.push(now - last);
      last = now;
      const part = (now - began) / ms;
      box.scrollTop = part * (box.scrollHeight - box.clientHeight);
      if (part < 1) requestAnimationFrame(step);
      else resolve(frames.slice(1));
    };
    requestAnimationFrame(step);
  });
}

/** Runs in the page. Returns whether the page's head shows this number of calls. */
function counts(calls: number): boolean {
  const { document } = globalThis as unknown as PageGlobals;
  return new RegExp(`of ${calls}(?!\\d)`).test(document.querySelector('.call-number')?.innerText ?? '');
}

/** Returns the milliseconds from a context's acknowledgement until a following page has it. */
async function liveLags(
  client: ContextClient,
  browser: Browser,
  { origin, token }: Server,
): Promise<readonly number[]> {
  const session = await client.openSession({ id: 'bench-page-live' });
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 } });
  const page = await context.newPage();
  const lags: number[] = [];
  for (let call = 1; call <= LIVE_CALLS; call += 1) {
    await session.reportMessage({ role: 'user', text: `Turn ${call}: go on.` });
    await session.assemble({ deliver: 'library' });
    if (call === 1) {
      await client.backpressure(0, 60_000);
      await page.goto(`${origin}/review/strip?session=bench-page-live&live=1#token=${token}`);
    }
    const began = performance.now();
    await page.waitForFunction(counts, call, { polling: 'raf' });
    if (call > 1) lags.push(performance.now() - began);
  }
  await context.close();
  await client.closeSession(session);
  return lags;
}

/**
 * Measures the review page in Chromium at realistic sizes. It times the first view of a session of
 * 1,600 calls and the later views, and scrolls them. It opens a recording of 100 MB, follows a
 * session, and exports 200 calls as one file. The node and the server already run. Each first view
 * uses a browser with an empty cache.
 */
export async function measurePage(workshop: Workshop): Promise<CaseResult> {
  const { turns, rounds } = workshop.sizes.history;
  const isFull = turns >= 1_000;
  const [calls, inFile] = isFull ? [LONG_CALLS, FILE_CALLS] : [turns, Math.min(turns, FILE_CALLS)];
  const dataDir = workshop.dataDir('page-data');
  const node = await workshop.node(dataDir);
  const client = await writer(workshop, node, dataDir);
  const content = (turn: number): string => `${turn}: ${'what the command says\n'.repeat(40)}`;
  workshop.tell(`a session of ${calls} calls`);
  await makeSession(client, 'bench-page-calls', { turns: calls, contexts: true, content });
  await makeSession(client, 'bench-page-file', { turns: inFile, contexts: true, content });
  const outputs = Math.min(OUTPUTS, turns / 2);
  workshop.tell(`a session of ${Math.round((outputs * OUTPUT_CHARS) / 1_000_000)} MB`);
  const line = 'what a long output says, line by line, as it was recorded then\n';
  const large = (turn: number): string => `${turn}\n${line.repeat(OUTPUT_CHARS / line.length)}`;
  await makeSession(client, 'bench-page-large', { turns: outputs, contexts: false, content: large });

  workshop.tell(`a page in a file, of ${inFile} calls`);
  const written = await exportedPage(workshop, { dataDir, session: 'bench-page-file', to: join(dataDir, 'file.html') });

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
    const first = await sample(`first view, the context of ${calls} calls`, times, () =>
      firstView(browser, server, 'strip?session=bench-page-calls'),
    );
    const opened = await sample('first view, the context of the large recording', times, () =>
      firstView(browser, server, 'strip?session=bench-page-large'),
    );
    const context = await browser.newContext({ viewport: { width: 1_280, height: 800 } });
    const page = await context.newPage();
    const address = (view: string): string => `${server.origin}/review/${view}?session=bench-page-calls`;
    const later = new Map<string, number[]>();
    for (let i = 0; i < times; i += 1) {
      await shownAfter(page, () => page.goto(`${address('search')}#token=${server.token}`));
      for (const [view, ms] of await laterViews(page)) later.set(view, [...(later.get(view) ?? []), ms]);
    }
    for (const [view, ms] of later) samples.push({ name: `later view, ${view}`, ms });
    workshop.tell('scrolling');
    const frames: number[] = [];
    for (const view of ['conversation', 'strip', 'request']) {
      await shownAfter(page, () => page.goto(address(view)));
      const found = await page.evaluate(scrolled, SCROLL_MS);
      samples.push({ name: `a frame while ${view} is scrolled`, ms: found });
      frames.push(...found);
    }
    workshop.tell('following');
    const lags = await liveLags(client, browser, server);
    samples.push({ name: 'from the acknowledgement of a context until the page has it', ms: lags });
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
          title: `export --html of ${inFile} calls`,
          rows: [
            { name: 'written in', value: written.seconds, unit: 's' },
            { name: 'the file', value: written.bytes / 1_048_576, unit: 'MiB' },
            { name: 'the most memory of the process', value: written.resident / 1_048_576, unit: 'MiB' },
          ],
        },
      ],
      goals: [
        { what: `export --html of ${inFile} calls`, measured: written.seconds, bar: 10, unit: 's' },
        { what: `first view of a session of ${calls} calls`, measured: first, bar: 1_000, unit: 'ms' },
        { what: 'the slowest later view, median', measured: slowest, bar: 200, unit: 'ms' },
        { what: 'a recording of 100 MB opens', measured: opened, bar: 1_500, unit: 'ms' },
        { what: 'a frame while it is scrolled', measured: 1_000 / perSecond, bar: 1_000 / 59.5, unit: 'ms' },
        { what: 'live lag, 95 in 100', measured: quantile(lags, 0.95), bar: 500, unit: 'ms' },
      ],
    };
  } finally {
    await browser.close();
    await server.close();
    await client.close();
  }
}
