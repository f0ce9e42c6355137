import type { Command, Option } from 'commander';
import type { FindHiddenTexts, HiddenTexts } from '../history/rebuild/hidden-texts.js';
import type { CountTexts } from '../history/rebuild/tokenizer.js';
import type { LogLevel } from '../host/log.js';
import type { HttpContract } from '../http/http-contract.js';
import type { ReviewFlags } from './review/answer.js';
import type { ReviewedSession } from './review/session-answer.js';

/** The running program, for the parts of contracts. */
export interface ProgramParts {
  readonly version: string;
  /** The folder of package.json, with the built program in `dist/`. */
  readonly home: URL;
  readonly contracts: readonly Contract[];
}

/** The result of an export or import, as text for people and as JSON for programs. */
export interface Written {
  readonly lines: readonly string[];
  readonly json: object;
}

/** A session to export, its destination, and the values of the flags of formats. */
export interface ExportTarget extends ReviewedSession {
  readonly folder: string;
  readonly flags: Readonly<Record<string, unknown>>;
  readonly home: URL;
  /** Finds what the redaction rules of a session hide. */
  readonly hiddenTexts: FindHiddenTexts;
  /** Formats that apply those rules. An error names them as alternatives. */
  readonly applyRules: readonly string[];
}

/** An export format. Its module loads on demand, while the database opens. */
export interface ContractExport {
  readonly about: string;
  /** Flags for this format. Formats that share a flag describe it alike. */
  readonly options?: () => readonly Option[];
  /** A flag that selects this format and whose value is the destination. */
  readonly fileFlag?: () => Option;
  /** Whether the format writes a folder, not a file. */
  readonly writesFolder?: boolean;
  /** Whether the format hides text by the redaction rules of a session. */
  readonly appliesRules?: boolean;
  load(): Promise<(target: ExportTarget) => Promise<Written>>;
}

/** A file or folder to import, and the flags of the command. */
export interface ImportSource {
  readonly file: string;
  readonly flags: Readonly<Record<string, unknown>> & { readonly data?: string };
}

/** An import format. Its module loads on demand. */
export interface ContractImport {
  readonly about: string;
  /** Flags for this format alone. */
  readonly options: () => readonly Option[];
  /**
   * Whether the file or folder at a path looks like this format. A format without this function
   * takes every other file.
   */
  recognises?(path: string): Promise<boolean>;
  run(source: ImportSource, contracts: readonly Contract[]): Promise<Written>;
  /** Finishes an interrupted import of a session, without its file. */
  finish?(session: string, flags: ImportSource['flags']): Promise<Written>;
}

/** Prints the answer of a report command in the format of a contract. */
type ReportAction = (reference: string, flags: ReviewFlags, count: CountTexts) => Promise<void>;

/** A format of `report list` and `report detail`. */
export interface ContractReports {
  /** The value of `--format`. */
  readonly format: string;
  /** Completes the help of `--format`. */
  readonly about: string;
  load(): Promise<{ readonly list: ReportAction; readonly detail: ReportAction }>;
  /** Further commands below `report`. */
  readonly commands?: () => readonly Command[];
}

/** How a session is shown to a person. */
export interface ShowFlags {
  readonly data?: string;
  readonly mount?: readonly string[];
  readonly port: number;
  readonly logLevel: LogLevel;
  /** Whether to open the browser. */
  readonly open: boolean;
}

/**
 * A contract with another program or a person, as one value: everything that it adds to the
 * interfaces. The value is small, and its parts load on demand.
 */
export interface Contract {
  /** Its HTTP interface, which loads when a server starts. */
  readonly http?: (program: ProgramParts) => Promise<HttpContract>;
  /** Commands of its own. */
  readonly commands?: (program: ProgramParts) => readonly Command[];
  /** Shows a session, or the list of sessions, to a person until the process ends. */
  readonly show?: (session: string | undefined, flags: ShowFlags, program: ProgramParts) => Promise<void>;
  /** Formats of `export` by name. */
  readonly exports?: Readonly<Record<string, ContractExport>>;
  /** Formats of `import` by name. */
  readonly imports?: Readonly<Record<string, ContractImport>>;
  readonly reports?: ContractReports;
  /** Loads the finder of texts that redaction rules hide. */
  readonly hiddenTexts?: () => Promise<FindHiddenTexts>;
}

/** Returns a finder of the texts that any contract hides. Each part loads with the first search. */
export function hiddenBy(contracts: readonly Contract[]): FindHiddenTexts {
  return async (timeline, session) => {
    const found = await Promise.all(
      contracts.map(async ({ hiddenTexts }) => (await hiddenTexts?.())?.(timeline, session)),
    );
    return all(found.filter((one) => one !== undefined));
  };
}

function all(found: readonly HiddenTexts[]): HiddenTexts {
  const sum = (of: (one: HiddenTexts) => number): number => found.reduce((total, one) => total + of(one), 0);
  return {
    rules: sum(({ rules }) => rules),
    inForce: sum(({ inForce }) => inForce),
    unresolved: sum(({ unresolved }) => unresolved),
    texts: found.flatMap(({ texts }) => texts),
    words: found.flatMap(({ words }) => words),
    objects: new Set(found.flatMap(({ objects }) => [...objects])),
  };
}

/** Loads the parts of contracts that a server needs. */
export async function servedContracts(
  program: ProgramParts,
): Promise<{ readonly contracts: readonly HttpContract[]; readonly hiddenTexts: FindHiddenTexts }> {
  const loaded = await Promise.all(program.contracts.map(({ http }) => http?.(program)));
  return { contracts: loaded.filter((one) => one !== undefined), hiddenTexts: hiddenBy(program.contracts) };
}
