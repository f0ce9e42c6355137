import { expect } from '@jest/globals';
import axe from 'axe-core';
import type { BrowserContext, Page } from 'playwright-core';

/**
 * Forbidden actions of a page: console errors, requests to other origins, policy violations,
 * dialogs from recorded text.
 */
export interface WatchedPage {
  readonly page: Page;
  readonly troubles: readonly string[];
  /** Waits until no request is pending. */
  settled(): Promise<void>;
  /** Serious and critical findings of axe. */
  barriers(): Promise<readonly string[]>;
}

/** Opens a page that is watched from its first request. */
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
  page.on('response', (response) => {
    if (response.status() >= 400) troubles.push(`response: ${response.status()} ${response.url()}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith('data:')) troubles.push(`request: ${url}`);
  });
  await page.exposeFunction('reportBreach', (told: string) => troubles.push(`policy: ${told}`));
  await page.addInitScript(() => {
    const report = (globalThis as unknown as { reportBreach: (told: string) => void }).reportBreach;
    document.addEventListener('securitypolicyviolation', (event) =>
      report(`${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  return {
    page,
    troubles,
    settled: async () => {
      await page.waitForFunction(
        () =>
          !document.body.innerText.includes('Reading…') &&
          document.querySelector('h1') !== null &&
          // Figures that are not counted yet.
          ![...document.querySelectorAll('td')].some(({ innerText }) => innerText === '…'),
      );
    },
    barriers: async () => {
      await page.evaluate(axe.source);
      const found = await page.evaluate(async () => {
        const { axe: loaded } = globalThis as unknown as {
          readonly axe: {
            run(): Promise<{
              readonly violations: readonly { id: string; impact: string; nodes: readonly { html: string }[] }[];
            }>;
          };
        };
        const { violations } = await loaded.run();
        return violations.map(({ id, impact, nodes }) => ({
          id,
          impact,
          html: nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)),
        }));
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

/** Expects that a page shows the hostile texts of a recorded session as text. */
export async function expectHostileTextsShown({ page }: Pick<WatchedPage, 'page'>): Promise<void> {
  const told = await page.locator('main').innerText();
  expect(told).toContain('<script>alert("ran")</script>');
  expect(told).toContain('\\u202e');
}
