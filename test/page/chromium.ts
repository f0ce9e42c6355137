import { execFileSync, spawnSync } from 'node:child_process';
import { type Browser, chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'] as const;

function installed(): string | undefined {
  const found = NAMES.map((name) => spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim());
  return found.find((path) => path !== '');
}

/**
 * Returns the path of Chromium. Installs a missing one from the system's packages if the user may.
 * Otherwise throws an error with advice.
 */
function chromiumPath(): string {
  const known = process.env.PALIMPSEST_CHROMIUM ?? installed();
  if (known !== undefined) return known;
  if (process.getuid?.() !== 0)
    throw new Error('No Chromium was found: apt-get install chromium, or set PALIMPSEST_CHROMIUM to one.');
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'ignore' });
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium'], { stdio: 'ignore' });
  const fresh = installed();
  if (fresh === undefined) throw new Error('apt-get install chromium ended without a Chromium.');
  return fresh;
}

/** Opens the browser; the caller closes it. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}
