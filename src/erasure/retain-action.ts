import { mkdir } from 'node:fs/promises';
import { printJson, printLines } from '../cli/output.js';
import { readSettings } from '../host/settings.js';
import { quoted } from '../objects/errors.js';
import { replaceFile } from '../process/owned-file.js';
import { ErasureError } from './erasure-error.js';
import { erasuresFolder } from './order-file.js';
import { type RetentionRule, readRetention, retentionFile, retentionText } from './retention.js';

/** Flags of `palimpsest retain`. */
export interface RetainFlags {
  readonly rule?: readonly string[];
  readonly none?: boolean;
  readonly data?: string;
  readonly json?: boolean;
}

function parseRule(text: string): RetentionRule {
  const [, sessions, days] = /^([^=]+)=(always|[1-9]\d{0,5})$/.exec(text) ?? [];
  if (sessions === undefined || days === undefined || sessions.slice(0, -1).includes('*'))
    throw new ErasureError(
      'usage',
      `${quoted(text)} is no rule: use a form like 'ci-*=30', '*=365' or 'audit=always', with * only at the end`,
    );
  return { sessions, keepDays: days === 'always' ? null : Number(days) };
}

const ruleLine = ({ sessions, keepDays }: RetentionRule): string =>
  `${sessions.padEnd(24)}  ${keepDays === null ? 'always' : `${keepDays} days after the last step`}`;

/** `palimpsest retain` */
export async function retainAction(flags: RetainFlags): Promise<void> {
  const { dataDir } = readSettings(process.env, flags).node;
  if (flags.none === true && flags.rule !== undefined)
    throw new ErasureError('usage', '--none removes all rules, so leave out --rule');
  const set = flags.none === true ? [] : flags.rule?.map(parseRule);
  if (set !== undefined) {
    await mkdir(erasuresFolder(dataDir), { recursive: true, mode: 0o700 });
    await replaceFile(retentionFile(dataDir), retentionText(set), { flush: true });
  }
  const rules = set ?? (await readRetention(dataDir));
  if (flags.json === true) return printJson({ rules });
  printLines(
    rules.length === 0
      ? ['No rules: sessions are kept for good.']
      : [...rules.map(ruleLine), 'See what is due with: palimpsest erase --retention --plan'],
  );
}
