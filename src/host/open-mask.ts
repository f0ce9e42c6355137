import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { RecordMask } from '../client/record-mask.js';
import { createWholeFile, textOf } from '../process/owned-file.js';
import type { MaskSetting } from './environment.js';

/** The file with the secret key for marks. */
const KEY_FILE = 'mask-key';
/** The file with the user's own texts and patterns to mask. */
const RULES_FILE = 'mask-rules';
const KEY_BYTES = 32;

/** Returns the key of a data folder. Creates one if there is none. */
async function keyOf(dataDir: string): Promise<Buffer> {
  const path = join(dataDir, KEY_FILE);
  if ((await textOf(path)) === undefined) {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await createWholeFile(path, `${randomBytes(KEY_BYTES).toString('hex')}\n`);
  }
  return Buffer.from(((await textOf(path)) ?? '').trim(), 'hex');
}

/**
 * Opens the mask of a data folder. Undefined if it masks nothing. With `inAnswers`, secrets are
 * also masked in the answers that agents get from their tools.
 *
 * @throws {MaskError} `malformed-rules` – the user's rules cannot be used
 */
export async function openMask(
  dataDir: string,
  setting: MaskSetting = 'known',
  inAnswers = false,
): Promise<RecordMask | undefined> {
  if (setting === 'off') return undefined;
  const { StoredMask } = await import('../redaction/stored-mask.js');
  const [key, own] = await Promise.all([keyOf(dataDir), textOf(join(dataDir, RULES_FILE))]);
  if (own === undefined) return new StoredMask({ key, level: setting, inAnswers });
  const { parseMaskRules } = await import('../redaction/text-mask.js');
  return new StoredMask({ key, level: setting, inAnswers, rules: parseMaskRules(own) });
}
