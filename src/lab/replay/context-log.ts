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

/** Takes and gives the measures of contexts, so that an interrupted replay has those of its first part. */
export interface ContextLog {
  /** The measure that an earlier replay kept of the context after a step. */
  earlier(session: SessionId, step: number): ContextMeasure | undefined;
  /** Keeps a measure before the session goes on. */
  keep(measure: ContextMeasure): Promise<void>;
  close(): Promise<void>;
}

/** For a database that forgets everything: no replay in it is ever gone on with. */
export function memoryContextLog(): ContextLog {
  return { earlier: () => undefined, keep: async () => undefined, close: async () => undefined };
}

const key = (session: string, step: number): string => `${session} ${step}`;
/** A line: the configuration as canonical JSON (logs of before have its hash), and a measure. */
const lineSchema = z.strictObject({ config: z.string(), measure: contextMeasureSchema });

interface KeptMeasures {
  /** Those of the asked configuration. */
  readonly measures: Map<string, ContextMeasure>;
  /** The configuration of the first measure, as its line has it. */
  readonly first: string | undefined;
  readonly bytes: number;
}

/** The measures of a log file up to its first line that is damaged, as the last one of a killed process may be, and how many bytes they take. */
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

/** In which settings two configurations differ; empty where the other one is not known in full. */
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
 * The measures of a replay's contexts next to the data folder's database, one line each, written before the session goes on: what an interrupted replay
 * measured is there when it goes on. Whoever opens it closes it.
 *
 * @throws {ReplayError} `other-config` – the session was replayed there with another configuration, so its contexts are others
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
      `session ${quoted(session)} of this data folder was replayed with another configuration${differences(first, config)}; keep to that one, or replay into a session of its own with --into SESSION`,
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
