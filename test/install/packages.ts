import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The platforms that `npm run pack:all` packs. */
export const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'darwin-x64', 'win32-x64'] as const;
export type Platform = (typeof PLATFORMS)[number];

/** The platform of this machine. */
export const OWN = `${process.platform}-${process.arch}`;

/** Returns the path of the program's tarball, or that of a platform. */
export function tarball(platform?: string): string {
  const folder = process.env.PALIMPSEST_PACKAGES ?? '';
  const form = platform === undefined ? /^palimpsest-\d.*\.tgz$/ : new RegExp(`^palimpsest-node-${platform}-.*\\.tgz$`);
  const name = readdirSync(folder).find((entry) => form.test(entry));
  if (name === undefined) throw new Error(`${folder} has no package ${platform ?? 'of the program'}`);
  return join(folder, name);
}

/** An unpacked package. */
export interface Unpacked {
  readonly dir: string;
  /** Its files, relative to it, sorted. */
  readonly files: readonly string[];
  json(path: string): Promise<Record<string, unknown>>;
}

/** Unpacks a tarball into a separate temporary folder. */
export async function unpacked(path: string): Promise<Unpacked> {
  const top = await mkdtemp(join(tmpdir(), 'palimpsest-unpacked-'));
  await promisify(execFile)('tar', ['-xzf', path, '-C', top]);
  const dir = join(top, 'package');
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(dir.length + 1))
    .sort();
  return { dir, files, json: async (file) => JSON.parse(await readFile(join(dir, file), 'utf8')) };
}
