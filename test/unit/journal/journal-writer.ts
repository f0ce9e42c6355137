import { once } from 'node:events';
import { type AskedProcess, buildProgram, startProgram } from '../../support/asked-process.js';

/** The program of the process: opens or adopts a journal and follows commands. */
const PROGRAM = `
import { writeSync } from "node:fs";
import { adoptableJournals, adoptJournal, openJournal } from "./journal/journals.js";
let journal;
const record = (n, size) => Buffer.from(n + ':' + 'x'.repeat(size));
const answer = {
  open: async ([dataDir, options]) => { journal = await openJournal(dataDir, options); return journal.owner; },
  adopt: async ([dataDir, owner]) => { journal = await adoptJournal(dataDir, owner); return journal?.status.pending; },
  adoptable: async ([dataDir]) => adoptableJournals(dataDir),
  append: async ([n, size]) => journal.append([record(n, size)]),
  done: async ([sequence]) => journal.markDone(sequence),
  close: async () => journal.close(),
  // Appends until it is killed. Reports acknowledgements through a pipe that stays readable after
  // the kill.
  storm: async ([size, doneBehind]) => {
    for (let n = 1; ; n++) {
      const sequence = await journal.append([record(n, size)]);
      writeSync(1, sequence + '\\n');
      if (doneBehind > 0 && sequence > doneBehind) journal.markDone(sequence - doneBehind);
      if (n % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  },
};
`;

/** A separate process that writes a journal. */
export interface JournalWriter extends AskedProcess {
  /**
   * Appends endlessly until it has acknowledged `count` records, kills the process, and returns
   * every acknowledged number.
   */
  storm(count: number, size: number, doneBehind: number): Promise<readonly number[]>;
}

/** Bundles the program into a folder. */
export const buildJournalWriter = (folder: string): Promise<string> => buildProgram(folder, 'journal-writer', PROGRAM);

/**
 * Starts such a process and waits until it listens. `limitBytes` is the maximum size of its files.
 */
export async function startJournalWriter(program: string, limitBytes?: number): Promise<JournalWriter> {
  const limited =
    limitBytes === undefined ? {} : { execPath: 'prlimit', execArgv: [`--fsize=${limitBytes}`, process.execPath] };
  const writer = await startProgram(program, { ...limited, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  const { child } = writer;
  return {
    ...writer,
    storm: async (count, size, doneBehind) => {
      let said = '';
      child.send({ ask: 'storm', args: [size, doneBehind] });
      const ended = once(child, 'close');
      child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
        said += chunk;
        if (said.split('\n').length > count) child.kill('SIGKILL');
      });
      await ended;
      return said.split('\n').slice(0, -1).map(Number);
    },
  };
}
