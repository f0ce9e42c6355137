import type { SessionAssembly } from '../../src/index.js';

/** A tool call of the demonstration's agent, and the text that the agent got. */
export interface DemoCall {
  readonly turn: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly answer: string;
}

/** Receives the demonstration's events as they happen. */
export interface Narrator {
  heading(text: string): void;
  line(text: string): void;
  call(call: DemoCall): void;
  context(assembly: SessionAssembly): void;
}

/** Ignores all events. */
export const SILENT: Narrator = {
  heading: () => undefined,
  line: () => undefined,
  call: () => undefined,
  context: () => undefined,
};

function clip(text: string, lines: number, width = 150): string {
  const all = text.split('\n');
  const shown = all.slice(0, lines).map((line) => (line.length > width ? `${line.slice(0, width - 1)}…` : line));
  return [...shown, ...(all.length > lines ? [`… ${all.length - lines} more lines`] : [])].join('\n');
}

/** Prints every event with ids and hashes, always in colour, for `--verbose`. */
export function verboseNarrator(print: (text: string) => void): Narrator {
  return {
    heading: (text) => print(`\n\x1b[1m== ${text}\x1b[0m`),
    line: print,
    call: ({ name, args, answer }) => print(`\n\x1b[36m> ${name} ${JSON.stringify(args)}\x1b[0m\n${clip(answer, 7)}`),
    context: ({ text, record }) => {
      for (const section of record.sections) print(`   ${section.name}: ${section.chars} characters`);
      print(`   sha256 ${record.sha256}\n`);
      print(clip(text, 40));
    },
  };
}
