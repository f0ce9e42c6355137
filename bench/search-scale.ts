/** Fills a database with texts, indexes them and measures searches. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Timeline } from '../src/history/rebuild/timeline.js';
import { askSearch } from '../src/history/search/search.js';
import { SearchIndex } from '../src/history/search/search-index.js';
import { ContextClient, ensureNode, localFilesystemId, stopNode } from '../src/index.js';
import { bytesBelow } from '../src/process/bytes-below.js';
import { codeWriter, seeded, textSize } from './code-text.js';
import { realTexts } from './real-text.js';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { from: { type: 'string', multiple: true, default: [] } },
});
const [megabytes, minutes] = [Number(positionals[0] ?? 1_000), Number(positionals[1] ?? 10)];
const kept = positionals[2] ?? '';
const SESSIONS = 40;
const QUERIES = 200;
/** Words of nearly every text. An expression with only such words is compared with all texts. */
const KEYWORDS = new Set(['import', 'await', 'const', 'export', 'function', 'Promise', 'return', 'undefined', 'error']);

const root = kept === '' ? await mkdtemp(join(tmpdir(), 'palimpsest-search-')) : kept;
const [files, dataDir] = [join(root, 'files'), join(root, 'data')];
await mkdir(files, { recursive: true });
const node = await ensureNode({ dataDir, profile: 'rocksdb', onProgress: () => undefined });
const client = await ContextClient.create({
  address: node.address,
  roots: [files],
  cwd: files,
  filesystemId: await localFilesystemId(dataDir),
  dataDir,
  durability: 'process',
});

const say = (what: string, value: unknown): void => console.log(`${what}: ${JSON.stringify(value)}`);
const since = (at: number): number => Math.round(performance.now() - at);
/**
 * Returns the CPU time of this process in milliseconds. Other load affects it less than clock time.
 */
const cpu = (): number => Math.round((process.cpuUsage().user + process.cpuUsage().system) / 1_000);
const samples: string[] = [];
const cut = seeded(9);
const real = values.from.length === 0 ? undefined : realTexts(values.from, { random: cut, size: () => textSize(cut) });

/** Returns a source of texts for one session. Undefined at the end of the real texts. */
function texts(number: number, random: () => number): () => Promise<string | undefined> {
  const write = codeWriter(number + 1);
  return async () => (real === undefined ? write(textSize(random)) : (await real.next()).value);
}

/** Writes texts through the client, like a replay, up to a number of texts or a time. */
async function fill(): Promise<number> {
  const [begun, cpuBefore] = [performance.now(), cpu()];
  let units = 0;
  const one = async (number: number): Promise<void> => {
    const session = await client.openSession({ id: `scale-${number}` });
    const random = seeded(number + 77);
    const next = texts(number, random);
    for (let call = 0; units < megabytes * 1e6 && since(begun) < minutes * 60_000; call += 1) {
      const text = await next();
      if (text === undefined) return;
      units += text.length;
      if (random() < 0.002) samples.push(text);
      if (call % 20 === 0) {
        await session.reportMessage({ role: 'user', text: text.slice(0, 3_000) });
        await session.assemble({ deliver: 'library' });
      }
      const isFile = call % 3 === 0;
      const path = `${number}-${call % 90}.ts`;
      if (isFile) await writeFile(join(files, path), text);
      const located = isFile ? (await client.files.locate(path)).source : undefined;
      const readings =
        located === undefined
          ? []
          : [{ source: located, reading: await client.files.read(located), activate: true } as const];
      await session.recordCall({
        tool: isFile ? 'read' : 'bash',
        args: { [isFile ? 'path' : 'command']: isFile ? path : `run ${path}` },
        status: 'ok',
        content: text,
        readings,
        answer: () => text,
      });
      await client.backpressure(64, 600_000);
    }
  };
  await Promise.all(Array.from({ length: SESSIONS }, (_, number) => one(number)));
  await client.delivered();
  say('texts, million characters', units / 1e6);
  say('written in ms', { clock: since(begun), cpu: cpu() - cpuBefore });
  return units;
}

const wordsOf = (text: string): readonly string[] =>
  (text.match(/[A-Za-z_]\w{4,}/g) ?? []).filter((one) => !KEYWORDS.has(one));

function queries(): readonly string[] {
  const random = seeded(5);
  const others = samples.flatMap(wordsOf);
  const found: string[] = [];
  while (found.length < QUERIES) {
    const lines = (samples[Math.floor(random() * samples.length)] ?? '').split('\n').filter((line) => line.length > 20);
    const line = lines[Math.floor(random() * lines.length)] ?? '';
    const words = wordsOf(line);
    const word = words[Math.floor(random() * words.length)] ?? 'selector';
    const at = Math.floor(random() * Math.max(1, line.length - 20));
    const other = others[Math.floor(random() * others.length)] ?? 'Absent';
    // The last word looks like a name, and hardly any text has it.
    const absent = `${word}${other.charAt(0).toUpperCase()}${other.slice(1)}`;
    const kinds = [word, line.slice(at, at + 8 + Math.floor(random() * 20)), `/${word}\\w*\\(/`, absent];
    const query = kinds[found.length % kinds.length] ?? word;
    if (query.trim().length > 2 && query.startsWith('/') === (found.length % 4 === 2)) found.push(query);
  }
  return found;
}

const units = await fill();
const index = new SearchIndex(join(dataDir, 'search'));
const timeline = await Timeline.open(await client.delivered());
const [begun, cpuBefore] = [performance.now(), cpu()];
const ready = await index.of(timeline, { onFailure: (reason) => say('failed', reason) });
say('indexed in ms', { clock: since(begun), cpu: cpu() - cpuBefore });
if (ready !== undefined) {
  say('index', { ...ready.size, ofText: Number((ready.size.bytes / ready.size.units).toFixed(3)) });
  say('folder bytes', await bytesBelow(join(dataDir, 'search')));
  for (const round of ['first', 'second'] as const) {
    const times: number[] = [];
    let [hits, texts] = [0, 0];
    const slow: { query: string; ms: number; texts: number; hits: number }[] = [];
    for (const query of queries()) {
      const at = performance.now();
      // Reuses one timeline, like questions between which nothing is written.
      const answer = await askSearch(timeline, { pattern: query, limit: 20, around: 1 }, ready);
      const ms = performance.now() - at;
      times.push(ms);
      slow.push({ query, ms: Math.round(ms), texts: answer.texts, hits: answer.hits.length });
      hits += answer.hits.length;
      texts += answer.texts;
    }
    times.sort((a, b) => a - b);
    const at = (part: number): number => Math.round(times[Math.floor(times.length * part)] ?? 0);
    say(`${round} round of ${QUERIES}, ms`, { p50: at(0.5), p95: at(0.95), most: at(0.999), hits, texts });
    say('slowest', slow.sort((a, b) => b.ms - a.ms).slice(0, 5));
  }
}
say(
  'load',
  loadavg().map((one) => Number(one.toFixed(1))),
);
say('characters', units);
await client.close();
await node.release();
await stopNode(dataDir);
if (root !== kept) await rm(root, { recursive: true });
