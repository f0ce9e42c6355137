import { readFile } from 'node:fs/promises';
import { systemCode } from '../../process/system-error.js';
import { ReplayError } from '../replay/replay-error.js';

/**
 * Reads a configuration file and passes it to `parse`; `{}` if no file is named.
 * @throws {ReplayError} `bad-config` if the file cannot be read or is not JSON
 * @throws errors of `parse`, which gets the file's name for its messages
 */
export async function readConfig<T>(
  path: string | undefined,
  parse: (value: unknown, source: string) => T,
): Promise<T> {
  if (path === undefined) return parse({}, 'no configuration');
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new ReplayError(
      'bad-config',
      `--config ${path} cannot be read (${systemCode(cause) ?? 'unknown error'}); name a JSON file`,
      {
        cause,
      },
    );
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ReplayError('bad-config', `--config ${path} is not JSON: ${String(cause)}`, { cause });
  }
  return parse(value, `--config ${path}`);
}
