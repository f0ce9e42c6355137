/**
 * Models a thousand agents over one log: how much of each resource they need, and which resource
 * runs out first.
 *
 * `node bench/cluster/capacity.mjs FIGURES.json [PAGE.md]` computes the tables from a run of `npm
 * run bench -- --only cluster`, which writes its figures to `bench/results`. With PAGE.md, it
 * writes the tables between the marks of that page.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const PAGE = join(root, 'docs', 'capacity.md');
const BEGIN = '<!-- computed: begin -->';
const END = '<!-- computed: end -->';

/** The assumptions; edit them here. */
export const ASSUMED = {
  agents: 1_000,
  steps: 100_000_000,
  /** Seconds from one step of a busy agent to the next: a model's answer and a tool. */
  secondsAStep: 10,
  /** Database reads per step: a context reads the changes since the previous one. */
  readsAStep: 1,
  /** Number of nodes. The servers of the log have other hosts. */
  nodes: 4,
  cores: 8,
  diskBytes: 2e12,
  /** Permitted load of a core or a log. */
  share: 0.7,
  /** Bytes per second at which a disk and a network copy an index. */
  copyBytesASecond: 200e6,
};

/**
 * Returns one figure of a run, by the title of its case and the name of its row. Throws if the
 * figure is missing.
 */
export function figureOf(run, title, name) {
  const found = run.cases
    .find((one) => one.kind === 'counted' && title.test(one.title))
    ?.rows.find((row) => row.name === name)?.value;
  if (typeof found !== 'number' || !Number.isFinite(found))
    throw new Error(`the run has no figure ${name} in ${title}`);
  return found;
}

/**
 * Returns the need, the supply and their ratio for each resource. The scarcest resource comes
 * first.
 */
export function capacity(run, assumed = ASSUMED) {
  const { agents, steps, secondsAStep, readsAStep, nodes, cores, diskBytes, share } = assumed;
  const stepsASecond = agents / secondsAStep;
  const stored = (name) => figureOf(run, /^Storage of a session/, name);
  const caught = (name) => figureOf(run, /transactions, each what one read/, name);
  const read = (name) => figureOf(run, /^Reads of/, name);
  const storedSteps = { postgres: stored('log in PostgreSQL: steps'), kafka: stored('log in Kafka: steps') };
  const aStep = {
    postgres: stored('log in PostgreSQL: files of PostgreSQL') / storedSteps.postgres,
    documents: stored('log in Kafka: files of PostgreSQL') / storedSteps.kafka,
    kafka: stored('log in Kafka: records of Kafka') / storedSteps.kafka,
    // Index bytes per transaction come from the index of many transactions. That of the small
    // session is mostly an empty write-ahead log.
    index: caught('index of a node') / caught('transactions'),
  };
  const caughtUpASecond =
    caught('transactions') /
    (caught('a new node over PostgreSQL, from nothing') - caught('a node over PostgreSQL that has its index'));
  const readMs = read('1 node over one log: processor time of the nodes');
  const row = (what, need, has, unit, next) => ({ what, need, has, unit, used: need / has, next });
  const used = [
    row(
      'steps a second that PostgreSQL accepts',
      stepsASecond,
      caught('log in PostgreSQL: taken a second') * share,
      '/s',
      'a faster disk for its write-ahead log; Kafka for the log; several steps in one transaction, which happens ' +
        'automatically when steps wait',
    ),
    row(
      'steps a second that Kafka accepts',
      stepsASecond,
      caught('log in Kafka: taken a second') * share,
      '/s',
      'a faster disk for PostgreSQL, which has the documents',
    ),
    row(
      'steps a second that each node indexes',
      stepsASecond,
      caughtUpASecond * share,
      '/s',
      'faster cores and disks, then a separate log for each team; more nodes do not help, because each indexes ' +
        'everything',
    ),
    row(
      'processor time of reads, of all nodes',
      stepsASecond * readsAStep * readMs,
      nodes * cores * 1_000 * share,
      'ms/s',
      'more nodes',
    ),
    row(
      'disk of PostgreSQL, log and documents',
      steps * aStep.postgres,
      diskBytes,
      'B',
      'a larger disk; each text is stored once, so a larger file costs only its changes',
    ),
    row('disk of PostgreSQL, only documents', steps * aStep.documents, diskBytes, 'B', 'a larger disk'),
    row('disk of each broker of Kafka', steps * aStep.kafka, diskBytes, 'B', 'a larger disk'),
    row(
      'disk of each node, its index',
      steps * aStep.index,
      diskBytes,
      'B',
      'a larger disk; a separate log for each team',
    ),
  ].sort((a, b) => b.used - a.used);
  const hours = {
    written: steps / stepsASecond / 3_600,
    nothing: steps / caughtUpASecond / 3_600,
    checkpoint: (steps * aStep.index) / assumed.copyBytesASecond / 3_600,
  };
  return { stepsASecond, aStep, caughtUpASecond, readMs, used, hours };
}

const number = (value) => value.toLocaleString('en', { maximumSignificantDigits: 2 });
const SIZES = [
  [1e12, 'TB'],
  [1e9, 'GB'],
  [1e6, 'MB'],
  [1e3, 'kB'],
];
function quantity(value, unit) {
  const [size, name] = SIZES.find(([least]) => value >= least) ?? [1, 'B'];
  return unit === 'B' ? `${number(value / size)} ${name}` : `${number(value)} ${unit}`;
}

/** Returns the tables as Markdown. */
export function capacityTables(run, assumed = ASSUMED) {
  const { stepsASecond, aStep, caughtUpASecond, readMs, used, hours } = capacity(run, assumed);
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [
    `From the run of ${run.machine.date.slice(0, 16)}Z on commit ${run.machine.commit}: ` +
      `${run.machine.processor}, load ${number(run.machine.load)} when it began.`,
    '',
    line(['each step needs', '']),
    line(['---', '---:']),
    line(['PostgreSQL, log and documents', quantity(aStep.postgres, 'B')]),
    line(['PostgreSQL, documents beside a log in Kafka', quantity(aStep.documents, 'B')]),
    line(['Kafka', quantity(aStep.kafka, 'B')]),
    line(['index of each node', quantity(aStep.index, 'B')]),
    line(['steps that a node without other work indexes', quantity(caughtUpASecond, 'a second')]),
    line(['processor time of a node for each read', quantity(readMs, 'ms')]),
    '',
    `${number(assumed.agents)} agents, a step every ${assumed.secondsAStep} s each: ${number(stepsASecond)} ` +
      `steps a second, ${number(assumed.steps)} steps after ${number(hours.written / 24)} days. ${assumed.nodes} ` +
      `nodes have ${assumed.cores} cores and ${quantity(assumed.diskBytes, 'B')} each, and are busy for at most ` +
      `${number(assumed.share * 100)} % of the time. The scarcest resource comes first:`,
    '',
    line(['', 'needed', 'available', 'used', 'how to raise the limit']),
    line(['---', '---:', '---:', '---:', '---']),
    ...used.map(({ what, need, has, unit, used: part, next }) =>
      line([what, quantity(need, unit), quantity(has, unit), `${number(part * 100)} %`, next]),
    ),
    '',
    line(['start of a new node', 'hours']),
    line(['---', '---:']),
    line(['without a checkpoint', number(hours.nothing)]),
    line([
      `from a checkpoint, copied at ${quantity(assumed.copyBytesASecond, 'B')} a second, and from the log after it`,
      number(hours.checkpoint),
    ]),
  ].join('\n');
}

/** Returns the page with recomputed tables. */
export function pageWith(page, run) {
  const [head, rest] = page.split(BEGIN);
  const tail = rest?.split(END)[1];
  if (tail === undefined) throw new Error(`the page needs the lines ${BEGIN} and ${END}`);
  return `${head}${BEGIN}\n\n${capacityTables(run)}\n\n${END}${tail}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [figures, page = PAGE] = process.argv.slice(2);
  if (figures === undefined)
    throw new Error('no figures: run node bench/cluster/capacity.mjs bench/results/RUN.json [PAGE.md]');
  writeFileSync(page, pageWith(readFileSync(page, 'utf8'), JSON.parse(readFileSync(figures, 'utf8'))));
}
