import { readFileSync } from 'node:fs';

/** Returns the version in package.json. `home` is the folder of that file. */
export function packageVersion(home: URL): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('package.json', home), 'utf8'));
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : 'unknown';
}
