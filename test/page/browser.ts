import { execFileSync, spawnSync } from 'node:child_process';
import { expect } from '@jest/globals';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'] as const;

function installed(): string | undefined {
  const found = NAMES.map((name) => spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim());
  return found.find((path) => path !== '');
}

/** Chromium's program; installed from the system's packages where it is missing and this user may. Throws saying what to do where not. */
function chromiumPath(): string {
  const known = process.env.PALIMPSEST_CHROMIUM ?? installed();
  if (known !== undefined) return known;
  if (process.getuid?.() !== 0) throw new Error('No Chromium was found: apt-get install chromium, or set PALIMPSEST_CHROMIUM to one.');
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'ignore' });
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium'], { stdio: 'ignore' });
  const fresh = installed();
  if (fresh === undefined) throw new Error('apt-get install chromium ended without a Chromium.');
  return fresh;
}

/** Opens the browser; whoever opens it closes it. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** What a page did that it must not: errors on the console, requests to others, breaches of its policy, dialogs that recorded text opened. */
export interface WatchedPage {
  readonly page: Page;
  readonly troubles: readonly string[];
  /** Waits until nothing is being read any more. */
  settled(): Promise<void>;
  /** What axe finds that is serious or critical. */
  barriers(): Promise<readonly string[]>;
}

/** Opens a page that is watched from its first request on. */
export async function watchedPage(context: BrowserContext, origin: string): Promise<WatchedPage> {
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => troubles.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith('data:')) troubles.push(`request: ${url}`);
  });
  await page.exposeFunction('reportBreach', (told: string) => troubles.push(`policy: ${told}`));
  await page.addInitScript(() => {
    const report = (globalThis as unknown as { reportBreach: (told: string) => void }).reportBreach;
    document.addEventListener('securitypolicyviolation', (event) => report(`${event.violatedDirective} ${event.blockedURI}`));
  });
  return {
    page,
    troubles,
    settled: async () => {
      await page.waitForFunction(() => !document.body.innerText.includes('Reading…') && document.querySelector('h1') !== null);
    },
    barriers: async () => {
      await page.evaluate(axe.source);
      const found = await page.evaluate(async () => {
        const { axe: loaded } = globalThis as unknown as {
          readonly axe: {
            run(): Promise<{ readonly violations: readonly { id: string; impact: string; nodes: readonly { html: string }[] }[] }>;
          };
        };
        const { violations } = await loaded.run();
        return violations.map(({ id, impact, nodes }) => ({ id, impact, html: nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)) }));
      });
      return found
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, impact, html }) => `${impact} ${id}: ${html.join(' | ')}`);
    },
  };
}

/** Expects that a page did nothing that it must not. */
export function expectQuiet({ troubles }: Pick<WatchedPage, 'troubles'>): void {
  expect(troubles).toEqual([]);
}
