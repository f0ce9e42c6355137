/**
 * Counts the source files that decide something in a warm call. Run `node scripts/walks.mjs` after
 * a build. `--files` lists the files. The calls are a `read` over MCP, a call that a harness
 * reports, the context after it, and a question about the past.
 *
 * V8 reports the blocks that ran. A file decides something if one of its functions ran one block
 * and skipped another. These do not count, because they decide nothing in a call that succeeds:
 *
 * - a skipped block that handles a failure: it throws or catches
 * - a loop, whose block V8 reports because it ran more often than its function
 * - a file of the vocabulary (floors 0 and 1), whose names say what it does; counted separately
 * - a file that did not run in every measured call, such as a tracker's timer
 *
 * Opening the database is not part of a warm question, and is also counted separately.
 */
import { fork, spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { projectRoot } from './bundle.mjs';

/** Number of unmeasured calls before the measured ones. */
const WARM_UP = 6;
/** Number of measured calls of a walk. Only a file that ran in each of them counts. */
const MEASURED = 3;

/** Returns the files that are in each of some counts. */
function inEach(counts) {
  const of = (what) => counts[0][what].filter((file) => counts.every((count) => count[what].includes(file)));
  return { ran: of('ran'), decides: of('decides') };
}

/** The rooms of floors 0 and 1. */
const VOCABULARY = new Set(
  JSON.parse(readFileSync(join(projectRoot, 'test/architecture/house.json'), 'utf8'))
    .floors.slice(0, 2)
    .flat(),
);

/** Matches string literals in the built code, which may contain any character. */
const TEXTS = /(["'`])(?:\\.|(?!\1)[^\\])*\1/gs;

/** Returns whether a block handles a failure: it begins or ends with `throw`, or is a `catch`. */
function handlesFailure(block) {
  const code = block.replace(TEXTS, '""');
  return /^[\s{?:&|]*(throw|catch)\b/.test(code) || /\bthrow [^;]*;[\s}]*$/.test(code);
}

/** Returns whether a function ran one block and skipped another that handles no failure. */
function decidesIn(text, ranges) {
  const around = [];
  return ranges.some((range) => {
    while (around.length > 0 && around.at(-1).endOffset <= range.startOffset) around.pop();
    const isSkipped = around.length > 0 && range.count < around.at(-1).count;
    around.push(range);
    return isSkipped && !handlesFailure(text.slice(range.startOffset, range.endOffset));
  });
}

/**
 * Starts to record the functions that run. `taken` returns the files that ran since its last call.
 */
function coverage(source) {
  const session = new Session();
  session.connect();
  const post = (method, params) => {
    let answer;
    // For its own process, the inspector answers before `post` returns.
    session.post(method, params, (_, result) => {
      answer = result;
    });
    return answer;
  };
  post('Profiler.enable');
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return () => {
    const ran = post('Profiler.takePreciseCoverage').result.flatMap(({ url, functions }) => {
      if (!url.startsWith(source)) return [];
      const called = functions.filter(({ functionName, ranges }) => functionName !== '' && ranges[0].count > 0);
      if (called.length === 0) return [];
      const text = readFileSync(fileURLToPath(url), 'utf8');
      const decides = called.some(({ ranges }) => decidesIn(text, ranges));
      return [{ file: url.slice(source.length).replace(/\.js$/, ''), decides }];
    });
    return { ran: ran.map(({ file }) => file), decides: ran.flatMap(({ file, decides }) => (decides ? [file] : [])) };
  };
}

/** Waits until no delivery of an earlier call runs. It would be counted with the next call. */
async function quiet(take) {
  do {
    take();
    await setTimeout(500);
  } while (take().ran.some((file) => file.startsWith('client/delivery/')));
}

const source = (folder) => pathToFileURL(join(folder, 'src/')).href;
const load = (folder, path) => import(new URL(`${path}.js`, source(folder)).href);

/** Counts a `read`, from its line on stdin to its answer after the acknowledgement. */
async function read(folder, project) {
  const take = coverage(source(folder));
  let measured = Number.NaN;
  const counted = [];
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = (chunk, ...rest) => {
    if (String(chunk).includes(`"id":${measured}`)) counted.push(take());
    return write(chunk, ...rest);
  };
  process.on('message', async (id) => {
    if (id === 'end') return process.send(inEach(counted), () => process.exit(0));
    await quiet(take);
    measured = id;
    process.send('armed');
  });
  process.argv = [process.argv[0], 'palimpsest', 'mcp', '--root', project, '--log-level', 'error'];
  await load(folder, 'main');
}

/**
 * Counts the next context of a session in a loop, after the harness reported a call. Counts that
 * report separately.
 */
async function loop(folder, project) {
  const take = coverage(source(folder));
  const [{ openClient }, { readSettings }, { LoopSession }, { DEFAULT_POLICY }, { HarnessSession }] = await Promise.all(
    [
      'host/open-client',
      'host/settings',
      'extensions/loop/loop-session',
      'session/step-policy',
      'harness/harness-session',
    ].map((path) => load(folder, path)),
  );
  const reported = [];
  const { reportMessages } = HarnessSession.prototype;
  HarnessSession.prototype.reportMessages = async function (...given) {
    const answer = await reportMessages.apply(this, given);
    reported.push(take());
    return answer;
  };
  const policy = { ...DEFAULT_POLICY, retention: 'use' };
  const options = { cwd: project, roots: [project], strict: false, shortIds: false, policy, what: 'walks' };
  const { client, close } = await openClient(readSettings(process.env), options);
  await client.ready();
  const session = new LoopSession(client, { id: 'walks', delivered: 'pi', layout: 'epoch' });
  const messages = [{ role: 'user', content: 'Look at the files.' }];
  const counted = [];
  for (let i = 0; i < WARM_UP + MEASURED; i += 1) {
    const id = `call_${i}`;
    const args = JSON.stringify({ path: `file-${i % 3}.txt` });
    messages.push({
      role: 'assistant',
      content: `Now part ${i}.`,
      tool_calls: [{ id, type: 'function', function: { name: 'read', arguments: args } }],
    });
    messages.push({ role: 'tool', tool_call_id: id, content: `the text of file ${i % 3}\n` });
    await quiet(take);
    const { epoch } = await session.context({ messages: [...messages], system: null });
    counted.push(take());
    const list = JSON.stringify([epoch, messages]);
    await session.handed({ sha256: hash('sha256', list), chars: list.length, messages: messages.length });
    await client.delivered();
  }
  await close();
  process.send({ reported: inEach(reported.slice(-MEASURED)), counted: inEach(counted.slice(-MEASURED)) }, () =>
    process.exit(0),
  );
}

/**
 * Counts `palimpsest context SESSION@turn:1`, asked several times in one process. Each time it
 * opens the database. Files that decide something only during the opening are counted separately.
 */
async function past(folder) {
  const take = coverage(source(folder));
  const [{ answerOnly }, { openReview }, { askContext }, { Timeline }] = await Promise.all(
    ['question-program', 'cli/review/answer', 'review/ask/ask', 'history/rebuild/timeline'].map((path) =>
      load(folder, path),
    ),
  );
  const asked = 'walks@turn:1';
  const ask = () => answerOnly([process.argv[0], 'palimpsest', 'context', asked]);
  for (let i = 0; i < WARM_UP; i += 1) await ask();
  take();
  await ask();
  const whole = take();
  const { timeline, close } = await openReview({});
  const opening = take();
  await askContext(await Timeline.open(timeline.store, timeline.paths), asked, {});
  const open = take();
  await close();
  const opens = new Set(opening.decides.filter((file) => !open.decides.includes(file)));
  const of = (files, isOpening) => files.filter((file) => opens.has(file) === isOpening);
  const answer = {
    counted: { ran: of(whole.ran, false), decides: of(whole.decides, false) },
    opening: { ran: of(whole.ran, true), decides: of(whole.decides, true) },
  };
  process.send(answer, () => process.exit(0));
}

const WALKS = { read, loop, past };

/** Runs a walk in a separate process. `talk` sends it requests until it has counted. */
function run(walk, folders, talk = async () => undefined) {
  const stdio = ['pipe', 'pipe', 'inherit', 'ipc'];
  const child = fork(fileURLToPath(import.meta.url), [walk, ...folders], { stdio });
  return new Promise((resolve, reject) => {
    child.stdout.resume();
    child.on('exit', (code) => reject(new Error(`the walk ${walk} ended with ${code}`)));
    child.on('message', (message) => (message === 'armed' ? undefined : resolve(message)));
    talk(child).catch(reject);
  });
}

/** Speaks MCP. Reads files and measures the last reads. */
async function talkOfRead(child) {
  const answered = (id) =>
    new Promise((resolve) => {
      const look = (chunk) => {
        if (!String(chunk).includes(`"id":${id}`)) return;
        child.stdout.off('data', look);
        resolve();
      };
      child.stdout.on('data', look);
    });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const call = async (id, method, params) => {
    const answer = answered(id);
    send({ id, method, params });
    await answer;
  };
  const clientInfo = { name: 'walks', version: '0' };
  await call(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  send({ method: 'notifications/initialized' });
  const first = 10 + WARM_UP;
  for (let id = 10; id < first + MEASURED; id += 1) {
    if (id >= first) {
      const armed = new Promise((resolve) => child.once('message', resolve));
      child.send(id);
      await armed;
    }
    await call(id, 'tools/call', { name: 'read', arguments: { path: `file-${id % 3}.txt` } });
  }
  child.send('end');
}

const [walk, ...folders] = process.argv.slice(2);
if (walk !== undefined && Object.hasOwn(WALKS, walk)) await WALKS[walk](...folders);
else {
  const folder = mkdtempSync(join(projectRoot, 'node_modules', '.walks-'));
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'palimpsest-walks-')));
  const [data, project] = [join(scratch, 'data'), join(scratch, 'project')];
  process.env.PALIMPSEST_DATA = data;
  const node = (verb) =>
    spawnSync(process.execPath, [join(projectRoot, 'dist/cli.js'), 'node', verb], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  try {
    const entryPoints = readdirSync(join(projectRoot, 'src'), { recursive: true })
      .filter((path) => /\.ts$/.test(path) && !path.endsWith('.d.ts'))
      .map((path) => join(projectRoot, 'src', path));
    await build({ entryPoints, outdir: join(folder, 'src'), outbase: join(projectRoot, 'src'), format: 'esm' });
    writeFileSync(join(folder, 'package.json'), '{"type":"module","version":"0"}');
    mkdirSync(project);
    for (const i of [0, 1, 2]) writeFileSync(join(project, `file-${i}.txt`), `the text of file ${i}\n`);
    node('start');
    const places = [folder, project];
    const read = await run('read', places, talkOfRead);
    const context = await run('loop', places);
    const question = await run('past', places);
    const counted = {
      'one read': read,
      'one reported call': context.reported,
      'the context after it': context.counted,
      'one question about the past': question.counted,
      'opening the database for it': question.opening,
    };
    for (const [name, { ran, decides }] of Object.entries(counted)) {
      const walk = decides.filter((file) => !VOCABULARY.has(file.split('/')[0]));
      const words = decides.length - walk.length;
      console.log(`${name}: ${walk.length} files decide something, and ${words} of the vocabulary; ${ran.length} ran`);
      if (process.argv.includes('--files')) console.log(walk.map((file) => `  ${file}`).join('\n'));
    }
  } finally {
    node('stop');
    for (const made of [folder, scratch]) rmSync(made, { recursive: true, force: true });
  }
}
