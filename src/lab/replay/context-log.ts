import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { canonicalJson } from '../../objects/canonical-json.js';
import { quoted } from '../../objects/errors.js';
import { hashText } from '../../objects/hashes.js';
import type { SessionId } from '../../objects/ids.js';
import { textOf } from '../../process/owned-file.js';
import { parseJson } from '../recordings/json/json-text.js';
import { type ContextMeasure, contextMeasureSchema } from './context-measure.js';
import type { ReplayConfig } from './replay-config.js';
import { ReplayError } from './replay-error.js';

/** Stores the measures of assembled contexts, so that an interrupted replay can resume. */
export interface ContextLog {
  /** Returns the measure of the context after a step, if an earlier replay stored one. */
  earlier(session: SessionId, step: number): ContextMeasure | undefined;
  /** Stores a measure. The replay waits for this before it continues. */
  keep(measure: ContextMeasure): Promise<void>;
  close(): Promise<void>;
}

/** Returns a log in memory, for temporary databases, in which no replay resumes. */
export function memoryContextLog(): ContextLog {
  return { earlier: () => undefined, keep: async () => undefined, close: async () => undefined };
}

const key = (session: string, step: number): string => `${session} ${step}`;
/**
 * A line of the log: the configuration as canonical JSON, and a measure. In older logs, `config` is
 * the configuration's hash.
 */
const lineSchema = z.strictObject({ config: z.string(), measure: contextMeasureSchema });

interface KeptMeasures {
  /** The measures for the requested configuration. */
  readonly measures: Map<string, ContextMeasure>;
  /** The configuration of the first line. */
  readonly first: string | undefined;
  readonly bytes: number;
}

/**
 * Reads the measures of a log file up to its first damaged line, which a killed process can leave.
 * Also returns the number of bytes read.
 */
async function readLog(path: string, config: string): Promise<KeptMeasures> {
  const mine = [config, hashText(config)];
  let first: string | undefined;
  const measures = new Map<string, ContextMeasure>();
  const text = (await textOf(path)) ?? '';
  let bytes = 0;
  for (const line of text.split(/(?<=\n)/)) {
    if (!line.endsWith('\n')) break;
    const parsed = lineSchema.safeParse(parseJson(line));
    if (!parsed.success) break;
    bytes += Buffer.byteLength(line);
    const { measure } = parsed.data;
    first ??= parsed.data.config;
    if (mine.includes(parsed.data.config)) measures.set(key(measure.session, measure.step), measure);
  }
  return { measures, first, bytes };
}

/** Returns the settings in which two configurations differ. Empty if `other` is only a hash. */
function differences(other: string, config: ReplayConfig): string {
  const there = (parseJson(other) ?? {}) as Readonly<Record<string, unknown>>;
  const all = Object.entries(config).filter(
    ([name, here]) => name in there && canonicalJson(there[name]) !== canonicalJson(here),
  );
  const said = all.map(
    ([name, here]) => `${name} was ${canonicalJson(there[name])} there and is ${canonicalJson(here)} here`,
  );
  return said.length === 0 ? '' : ` (${said.join(', ')})`;
}

/**
 * Opens the log of a replay's measures in the data folder. Each measure is written before the
 * session continues, so an interrupted replay can resume. The caller closes the log.
 *
 * @throws {ReplayError} `other-config` – the data folder has a replay of the session with another
 *   configuration, so contexts would differ
 */
export async function openContextLog(dataDir: string, session: SessionId, config: ReplayConfig): Promise<ContextLog> {
  const folder = join(dataDir, 'replays');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${session}.jsonl`);
  const written = canonicalJson(config);
  const { measures, first, bytes } = await readLog(path, written);
  if (first !== undefined && measures.size === 0) {
    throw new ReplayError(
      'other-config',
      `session ${quoted(session)} of this data folder was replayed with another ` +
        `configuration${differences(first, config)}. Use that configuration, or replay into another session with ` +
        '--into SESSION',
    );
  }
  const file = await open(path, 'a', 0o600);
  await file.truncate(bytes);
  return {
    earlier: (id, step) => measures.get(key(id, step)),
    keep: async (measure) => {
      await file.write(`${JSON.stringify({ config: written, measure })}\n`);
    },
    close: () => file.close(),
  };
}
