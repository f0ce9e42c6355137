import { spawn } from 'node:child_process';
import { SYSTEM } from './system.js';

const LIMIT_MS = 5_000;
const MOST_BYTES = 1_048_576;

/**
 * Settings with which git reads only objects of the local repository. Otherwise the repository's
 * settings could make git fetch missing objects, and run a program for that.
 */
const SETTINGS = [
  'allow',
  ...['ext', 'fd', 'file', 'git', 'http', 'https', 'ssh'].map((name) => `${name}.allow`),
].flatMap((name) => ['-c', `protocol.${name}=never`]);

/**
 * Asks git for the hashes of files in commits. `names` are `COMMIT:PATH`, without line endings.
 * Returns one entry per name: null for a path that the commit lacks. Undefined if git is not
 * installed or does not answer.
 */
export function gitBlobs(gitDir: string, names: readonly string[]): Promise<readonly (string | null)[] | undefined> {
  return new Promise((resolve) => {
    const asked = ['cat-file', '--batch-check=%(objectname) %(objecttype)'];
    const child = spawn('git', ['--no-replace-objects', ...SETTINGS, '--git-dir', gitDir, ...asked], {
      cwd: SYSTEM.searchedFolder,
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: LIMIT_MS,
      windowsHide: true,
    });
    let output = '';
    child.once('error', () => resolve(undefined));
    child.stdin.on('error', () => undefined);
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      output += part;
      if (output.length > MOST_BYTES) child.kill();
    });
    child.once('close', (code) => {
      const lines = output.split('\n').slice(0, -1);
      const found = lines.map((line) => /^([0-9a-f]{40,64}) blob$/.exec(line)?.[1] ?? null);
      resolve(code === 0 && lines.length === names.length ? found : undefined);
    });
    child.stdin.end(names.map((name) => `${name}\n`).join(''));
  });
}
