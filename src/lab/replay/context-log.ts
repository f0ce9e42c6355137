import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { SessionId } from '../../objects/ids.js';
import { systemCode } from '../../process/system-error.js';
import { parseJson } from '../recordings/json/json-text.js';
import { type ContextMeasure, contextMeasureSchema } from './context-measure.js';

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
const lineSchema = z.strictObject({ config: z.string(), measure: contextMeasureSchema });

/** The measures of a log file up to its first line that is damaged, as the last one of a killed process may be, and how many bytes they take. */
async function readLog(path: string, config: string): Promise<{ readonly measures: Map<string, ContextMeasure>; readonly bytes: number }> {
  const measures = new Map<string, ContextMeasure>();
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return '';
    throw error;
  });
  let bytes = 0;
  for (const line of text.split(/(?<=\n)/)) {
    if (!line.endsWith('\n')) break;
    const parsed = lineSchema.safeParse(parseJson(line));
    if (!parsed.success) break;
    bytes += Buffer.byteLength(line);
    const { measure } = parsed.data;
    if (parsed.data.config === config) measures.set(key(measure.session, measure.step), measure);
  }
  return { measures, bytes };
}

/**
 * The measures of a replay's contexts next to the data folder's database, one line each, written before the session goes on: what an interrupted replay
 * measured is there when it goes on. Whoever opens it closes it.
 */
export async function openContextLog(dataDir: string, session: SessionId, config: string): Promise<ContextLog> {
  const folder = join(dataDir, 'replays');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${session}.jsonl`);
  const { measures, bytes } = await readLog(path, config);
  const file = await open(path, 'a', 0o600);
  await file.truncate(bytes);
  return {
    earlier: (id, step) => measures.get(key(id, step)),
    keep: async (measure) => {
      await file.write(`${JSON.stringify({ config, measure })}\n`);
    },
    close: () => file.close(),
  };
}
