import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { printJson, printLines } from '../cli/output.js';
import { readSettings } from '../host/settings.js';
import { quoted } from '../objects/errors.js';
import type { SessionId } from '../objects/ids.js';
import { parseJson, replaceFile, textOf } from '../process/owned-file.js';
import { ErasureError } from './erasure-error.js';
import type { KnownSession } from './inventory.js';

const ruleSchema = z.strictObject({
  /** A session's id, or the beginning of ids followed by `*`. `*` alone means every session. */
  sessions: z.string().min(1),
  /** Days to keep a session after its last step. Null keeps it forever. */
  keepDays: z.number().min(1).nullable(),
});

/** A rule for how long sessions are kept. */
export type RetentionRule = Readonly<z.output<typeof ruleSchema>>;

const fileSchema = z.strictObject({ version: z.literal(1), rules: z.array(ruleSchema) });

/** Milliseconds in a day. */
export const DAY_MS = 86_400_000;

/** Returns the path of the retention rules of a data folder. */
const retentionFile = (dataDir: string): string => join(dataDir, 'erasures', 'retention.json');

/**
 * Reads the retention rules of a data folder. Empty if there are none.
 * @throws {ErasureError} `usage` if the file is invalid
 */
export async function readRetention(dataDir: string): Promise<readonly RetentionRule[]> {
  const text = await textOf(retentionFile(dataDir));
  if (text === undefined) return [];
  const file = parseJson(text, fileSchema);
  if (file !== undefined) return file.rules;
  throw new ErasureError(
    'usage',
    `${retentionFile(dataDir)} is not a list of retention rules: correct it, or set the rules again with ` +
      'palimpsest retain',
  );
}

/** Returns the content of a file with retention rules. */
const retentionText = (rules: readonly RetentionRule[]): string =>
  `${JSON.stringify({ version: 1, rules }, undefined, 2)}\n`;

const fits = ({ sessions }: RetentionRule, id: string): boolean =>
  sessions.endsWith('*') ? id.startsWith(sessions.slice(0, -1)) : id === sessions;

/**
 * Returns the sessions that are older than their rule allows. For each session, the rule with the
 * longest matching pattern applies. A session with a fork that stays also stays.
 */
export function expiredSessions(
  sessions: readonly KnownSession[],
  rules: readonly RetentionRule[],
  now: number,
): ReadonlySet<SessionId> {
  const isExpired = ({ id, lastAt }: KnownSession): boolean => {
    const [rule] = rules.filter((one) => fits(one, id)).sort((a, b) => b.sessions.length - a.sessions.length);
    return rule !== undefined && rule.keepDays !== null && lastAt < now - rule.keepDays * DAY_MS;
  };
  const expired = new Set(sessions.filter(isExpired).map(({ id }) => id));
  for (let size = -1; size !== expired.size; ) {
    size = expired.size;
    for (const { id, parent } of sessions) if (parent !== undefined && !expired.has(id)) expired.delete(parent.session);
  }
  return expired;
}

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
      `${quoted(text)} is not a rule: use a form like 'ci-*=30', '*=365' or 'audit=always', with * only at the end`,
    );
  return { sessions, keepDays: days === 'always' ? null : Number(days) };
}

const ruleLine = ({ sessions, keepDays }: RetentionRule): string =>
  `${sessions.padEnd(24)}  ${keepDays === null ? 'kept always' : `${keepDays} days after the last step`}`;

/** `palimpsest retain` */
export async function retainAction(flags: RetainFlags): Promise<void> {
  const { dataDir } = readSettings(process.env, flags).node;
  if (flags.none === true && flags.rule !== undefined)
    throw new ErasureError('usage', '--none removes all rules: leave out --rule');
  const set = flags.none === true ? [] : flags.rule?.map(parseRule);
  if (set !== undefined) {
    await mkdir(dirname(retentionFile(dataDir)), { recursive: true, mode: 0o700 });
    await replaceFile(retentionFile(dataDir), retentionText(set), { flush: true });
  }
  const rules = set ?? (await readRetention(dataDir));
  if (flags.json === true) return printJson({ rules });
  printLines(
    rules.length === 0
      ? ['No rules: sessions are kept forever.']
      : [...rules.map(ruleLine), 'See what is due with: palimpsest erase --retention --plan'],
  );
}
