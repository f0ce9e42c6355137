/**
 * Measures the first import of a long transcript of Claude Code: `palimpsest open` of a file that
 * this program writes, with a running node.
 *
 * Usage: npm run build && node bench/first-reading.mjs [MEGABYTES]
 */
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processorTime } from './processor-time.mjs';

const bytes = Number(process.argv[2] ?? 10) * 1_000_000;
const home = mkdtempSync(join(tmpdir(), 'palimpsest-first-reading-'));
const [data, project] = ['data', 'project'].map((name) => join(home, name));
const folder = join(home, '.claude', 'projects', '-project');
for (const one of [project, folder]) mkdirSync(one, { recursive: true });
mkdirSync(data, { mode: 0o700 });

/** Writes a session of about `size` bytes and returns its path and its number of calls. */
function transcript(size) {
  const session = randomUUID();
  const [lines, texts] = [[], new Map()];
  let [at, parent, written, calls] = [Date.UTC(2026, 10, 1), null, 0, 0];
  const add = (type, content, more = {}) => {
    const uuid = randomUUID();
    at += 1_000;
    const message =
      type === 'user'
        ? { role: 'user', content }
        : { id: `msg_${uuid}`, type: 'message', role: 'assistant', model: 'claude-opus-5-5', content };
    const own = { parentUuid: parent, sessionId: session, cwd: project, version: '2.1.332', type, uuid, message };
    const line = JSON.stringify({ ...own, timestamp: new Date(at).toISOString(), ...more });
    lines.push(line);
    [parent, written] = [uuid, written + line.length + 1];
  };
  const call = (name, input, content, twin) => {
    calls += 1;
    const id = `toolu_${session.slice(0, 8)}_${calls}`;
    add('assistant', [{ type: 'tool_use', id, name, input }]);
    add('user', [{ type: 'tool_result', tool_use_id: id, content }], twin === undefined ? {} : { toolUseResult: twin });
  };
  const words = (n, name) => Array.from({ length: n }, (_, i) => `  const ${name}${i} = compute(${i * 7}, '${name}');`);
  for (let turn = 0; written < size; turn += 1) {
    add('user', `Please look at part ${turn} and mend what is wrong there.`);
    for (let i = 0; i < 6; i += 1) {
      const path = join(project, 'src', `file-${(turn * 5 + i * 3) % 60}.ts`);
      const text = texts.get(path) ?? `${words(90, `w${texts.size}_`).join('\n')}\n`;
      const rows = text.split('\n').slice(0, -1);
      const file = { filePath: path, content: text, numLines: rows.length, startLine: 1, totalLines: rows.length };
      const shown = rows.map((row, n) => `${String(n + 1).padStart(6)}→${row}`).join('\n');
      call('Read', { file_path: path }, shown, { type: 'text', file });
      call('Bash', { command: `npm test -- part ${turn}-${i}` }, words(30, `out${turn}_${i}_`).join('\n'));
      if (i % 3 !== 0) texts.set(path, text);
      else {
        const [from, to] = [rows[turn % 90], `${rows[turn % 90]} // ${turn}`];
        const edit = { filePath: path, oldString: from, newString: to, originalFile: text, structuredPatch: [] };
        const input = { file_path: path, old_string: from, new_string: to };
        call('Edit', input, `The file ${path} has been updated.`, edit);
        texts.set(path, text.replace(from, to));
      }
    }
    add('assistant', [{ type: 'text', text: `Part ${turn} is done: ${words(3, 'said').join(' ')}` }]);
  }
  const path = join(folder, `${session}.jsonl`);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return { path, calls, lines: lines.length, size: written };
}

const env = { ...process.env, HOME: home, PALIMPSEST_DATA: data };
function cli(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['dist/cli.js', ...args], { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`palimpsest ${args.join(' ')}: ${stderr || stdout}`);
  return stdout;
}
/** Returns the seconds of processor time that the database has used so far. */
const databaseSeconds = () => processorTime(JSON.parse(readFileSync(join(data, 'node.json'), 'utf8')).jvm.pid) / 1_000;

const reads = (path) => {
  const began = performance.now();
  cli('open', path, '--no-page', '--no-browser');
  return (performance.now() - began) / 1_000;
};

try {
  // Starts the node. Its JVM has not compiled anything yet.
  reads(transcript(100_000).path);
  for (const which of ['first', 'second']) {
    const { path, calls, lines, size } = transcript(bytes);
    const before = databaseSeconds();
    const seconds = reads(path);
    const busy = databaseSeconds() - before;
    const about = `${(size / 1e6).toFixed(1)} MB, ${lines} lines, ${calls} calls`;
    console.log(`the ${which} transcript after the start of the node (${about}): ${seconds.toFixed(1)} s`);
    console.log(`  processor time of the database: ${busy.toFixed(1)} s`);
  }
} finally {
  cli('node', 'stop');
  rmSync(home, { recursive: true, force: true });
}
