import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Packs everything into a temporary folder. PALIMPSEST_PACKAGES names a folder of packages that are
 * there already.
 */
export default function packAll() {
  if (process.env.PALIMPSEST_PACKAGES) return;
  const out = mkdtempSync(join(tmpdir(), 'palimpsest-packages-'));
  const { status } = spawnSync('npm', ['run', 'pack:all', '--', '--out', out], { stdio: 'inherit' });
  if (status !== 0) throw new Error('npm run pack:all failed.');
  process.env.PALIMPSEST_PACKAGES = out;
  process.env.PALIMPSEST_PACKAGES_MADE = out;
}
